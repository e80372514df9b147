package main

// THE MODEL OF ONE LEASE
//
// State. A lease is free, or it has a holder. The holder of a command that people repeat (`maint
// acquire`, `renew`, `release`) is the name that it was given, `kubeadm:` before it for an
// administrator's; the holder of a command that runs under the lease (`hold`, `maint run`) is that
// one process, whatever its name: another process of the same name is another holder. With the holder
// the state keeps
//
//	until   the earliest instant at which others may take the lease by expiry: the earliest instant of
//	        the last write, and the duration, and the 3 s of grace of maintenance leases, and less what
//	        the writer's clock may be behind. An administrator's lease has none.
//	writer  the invocation that began this term, while nothing else has written since: what it began
//	        it may undo.
//	floor   an instant that has passed: the latest call so far, or that of a takeover by expiry. An
//	        operation that returned before the floor cannot come after it.
//	evicted the processes from which a third party has taken the lease away, and when: their commands
//	        may live on until the lease that they had would have expired.
//	ghost   the holder does not know that it has the lease: no command of its runs under it.
//	used    which take-aways of unknown outcome were done: each is done once at most.
//
// Time. There is one clock, the machine's, in nanoseconds. An operation takes effect at one instant
// between its call and its return; porcupine looks for an order of these instants that explains every
// answer. Expiry is therefore no operation of its own: taking a lease from another holder is legal if
// the operation returned no earlier than `until`, by a clock that may be as far ahead as that process's
// may be, and it raises the floor to there. A lease that is past `until` and not taken is still its
// holder's: others may be told that it is held, and the holder may renew or release it.
//
// Operations, and when they are legal:
//
//	acquire     the lease is free, or the holder's own, or expired; afterwards it is the holder's. An
//	            administrator's lease is nobody else's to take, ever. (`renew` is the same: it takes
//	            what was lost between its look and its write, and warns of it.)
//	held        (exit code 4) the lease is another holder's.
//	not-held    (exit code 3 of `renew`) the lease is free.
//	release     the lease is the holder's own or free; afterwards it is free.
//	admin-held  (exit code 6 of `release`) the lease is an administrator's.
//	end         a process that had a command under the lease is done with it: if it is still the
//	            process's own, it is free afterwards. Always legal.
//	undo        the rollback of an acquisition that was given up: if that invocation is the writer, the
//	            lease is free afterwards. Always legal.
//	take-away   a third party deletes the lease, or releases it by force: it is free afterwards. Force
//	            is not legal with an administrator's lease.
//	beat        the command under the lease lives: the lease is that process's, or was taken away from
//	            it no longer ago than the lease's duration.
//	renewed     a renewal by a process was seen in the lease: it is that process's, and until grows.
//
// An operation whose outcome is not known may have been done or not, at any instant between its call and
// the last instant at which a request of it can arrive (see history.go). To search for that instant
// would take porcupine forever, so it is not given these operations. Instead, what porcupine calls
// the state is everything that the lease may be, and before every step whatever may have been done by
// then is added. A possibility that allows nothing that another does not allow too is dropped; few
// remain. (That such an operation is done only once is not kept in mind, but for take-aways, which free
// any holder's lease: it would take more time than it is worth.)

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

type kind string

const (
	acquire   kind = "acquire"
	held      kind = "held"
	notHeld   kind = "not-held"
	release   kind = "release"
	adminHeld kind = "admin-held"
	end       kind = "end"
	undo      kind = "undo"
	takeAway  kind = "take-away"
	beat      kind = "beat"
	renewed   kind = "renewed"
)

// An action is an operation on one lease, as the model knows it.
type action struct {
	kind   kind
	lease  string
	id     int    // the invocation that it is part of
	holder string // the holder that acts
	plain  string // for an administrator: the same person's name without the prefix, theirs too
	maybe  bool   // whether it was done is not known
	call   int64
	ret    int64
	lasts  int64 // duration and grace, less what the writer's clock may be behind
	ahead  int64 // how far the clock that judges expiry may be ahead
	until  int64 // renewed: when the renewal lets others take the lease
	spares bool  // take-away: not from an administrator

	ghost    bool   // acquire: of which its process did not know
	duration int64  // beat: of the lease, without the grace
	frees    string // take-away: the name of the only holder that it can have been done to, if that is known
	once     uint64 // take-away of unknown outcome: its bit in the state
	ends     *ends
}

// ends is how long what a state keeps in mind can matter.
type ends struct {
	lives map[string]int64 // the last beat of each process
	once  []int64          // when each take-away of unknown outcome was done at the latest
}

func (a action) admin() bool { return a.plain != "" }

// mine tells whether a lease that is held so is the actor's own.
func (a action) mine(s state) bool {
	return s.holder == a.holder || (a.admin() && s.holder == a.plain)
}

type state struct {
	holder string // "" is free
	admin  bool
	until  int64
	writer int // 0 is nobody who could undo it
	floor  int64

	ghost   bool
	evicted [4]eviction // the latest first
	used    uint64
}

// An eviction is a process whose lease a third party took away, at the latest at that instant.
type eviction struct {
	process string
	landed  int64
}

func (s state) String() string {
	if s.holder == "" {
		return "free"
	}
	if s.admin {
		return "held by " + s.holder
	}
	return fmt.Sprintf("held by %s until %.3fs", s.holder, seconds(s.until))
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// freed is the lease without its holder.
func (s state) freed() state { return state{floor: s.floor, evicted: s.evicted, used: s.used} }

// takenAway is the lease after a third party has taken it from its holder.
func (s state) takenAway(a action) (state, bool) {
	switch {
	case a.spares && s.admin, s.used&a.once != 0:
		return s, false
	case a.maybe && (s.holder == "" || (a.frees != "" && a.frees != nameOf(s.holder))):
		return s, false
	}
	next := s.freed()
	next.used |= a.once
	if isProcess(s.holder) && !s.ghost {
		next.evicted = [4]eviction{{s.holder, a.ret}}
		n := 1
		for _, e := range s.evicted {
			if n < len(next.evicted) && e.process != s.holder {
				next.evicted[n] = e
				n++
			}
		}
	}
	return next.forget(a.ends), true
}

// forget drops what cannot matter any more: states that differ in nothing else are one.
func (s state) forget(ends *ends) state {
	if ends == nil {
		return s
	}
	for n, latest := range ends.once {
		if latest < s.floor {
			s.used &^= 1 << n
		}
	}
	evicted := s.evicted
	s.evicted = [4]eviction{}
	n := 0
	for _, e := range evicted {
		if ends.lives[e.process] >= s.floor && e.process != "" {
			s.evicted[n] = e
			n++
		}
	}
	return s
}

// outlives tells whether a command lives on, as it may, after its lease was taken away.
func (a action) outlives(s state) bool {
	return slices.ContainsFunc(s.evicted[:], func(e eviction) bool {
		return e.process == a.holder && a.call <= e.landed+a.duration
	})
}

// step gives the state in which an action leaves a lease, if it is legal.
func step(s state, a action) (next state, legal bool) {
	s.floor = max(s.floor, a.call)
	if a.ret < s.floor {
		return s, false
	}
	s = s.forget(a.ends)
	switch a.kind {
	case acquire:
		return acquired(s, a)
	case held:
		return s, s.holder != "" && !a.mine(s)
	case notHeld:
		return s, s.holder == ""
	case release:
		return s.freed(), s.holder == "" || a.mine(s)
	case adminHeld:
		return s, s.admin
	case end:
		if a.mine(s) {
			s = s.freed()
		}
		return s, true
	case undo:
		if s.holder != "" && s.writer == a.id {
			s = s.freed()
		}
		return s, true
	case takeAway:
		return s.takenAway(a)
	case beat:
		return s, (a.mine(s) && !s.ghost) || a.outlives(s)
	case renewed:
		legal := a.mine(s)
		s.until = max(s.until, a.until)
		s.writer = 0
		return s, legal
	}
	panic(a.kind)
}

func acquired(s state, a action) (state, bool) {
	floor := s.floor
	began := true
	switch {
	case s.holder == "":
	case a.mine(s):
		// Whoever was told that they hold it may count on it until it expires.
		began = a.ret >= s.until && !s.admin
	case s.admin:
		return s, false
	default:
		expired := s.until - a.ahead
		if a.ret < expired {
			return s, false
		}
		floor = max(floor, expired)
	}
	next := state{holder: a.holder, admin: a.admin(), floor: floor, ghost: a.ghost, evicted: s.evicted, used: s.used}
	if !next.admin {
		next.until = floor + a.lasts
	}
	if began && a.maybe {
		next.writer = a.id
	}
	return next, true
}

// allows tells whether whatever can follow upon another state can follow upon this one.
func (s state) allows(other state) bool {
	for _, e := range other.evicted {
		if e.process != "" && !slices.ContainsFunc(s.evicted[:], func(it eviction) bool {
			return it.process == e.process && it.landed >= e.landed
		}) {
			return false
		}
	}
	return s.holder == other.holder && s.admin == other.admin && s.until <= other.until && s.floor <= other.floor &&
		(s.writer == other.writer || other.writer == 0) && (!s.ghost || other.ghost) && s.used&^other.used == 0
}

// A world is all that a lease may be, sorted.
type world []state

func newWorld() world { return world{{}} }

func (w world) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, s := range w {
		maphash.WriteComparable(&h, s)
	}
	return h.Sum64()
}

var seed = maphash.MakeSeed()

func (w world) String() string {
	var words []string
	for _, s := range w {
		words = append(words, s.String())
	}
	return strings.Join(words, ", or ")
}

func compare(a, b state) int {
	return cmp.Or(
		cmp.Compare(a.holder, b.holder), cmp.Compare(a.until, b.until), cmp.Compare(a.floor, b.floor),
		cmp.Compare(a.writer, b.writer), cmp.Compare(a.used, b.used), cmp.Compare(number(a.ghost), number(b.ghost)),
		slices.CompareFunc(a.evicted[:], b.evicted[:], func(a, b eviction) int {
			return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.landed, b.landed))
		}))
}

func number(set bool) int {
	if set {
		return 1
	}
	return 0
}

// add adds a state, unless there is one that allows as much; whether it did.
func (w *world) add(one state) bool {
	for _, s := range *w {
		if s.allows(one) {
			return false
		}
	}
	*w = append(slices.DeleteFunc(*w, one.allows), one)
	return true
}

// by adds whatever may have been done by an instant of what may have been done at all.
func (w world) by(instant int64, maybes []action) world {
	all := slices.Clone(w)
	for fresh := w; len(fresh) > 0; {
		var found world
		for _, s := range fresh {
			for _, a := range maybes {
				if next, legal := step(s, a); legal && next.floor <= instant && all.add(next) {
					found = append(found, next)
				}
			}
		}
		fresh = found
	}
	return all
}

// next gives what the lease may be after an action; nothing if the action is not legal.
func (w world) next(a action, maybes []action) world {
	var after world
	for _, s := range w.by(a.ret, maybes) {
		if next, legal := step(s, a); legal {
			after.add(next)
		}
	}
	slices.SortFunc(after, compare)
	return after
}

// model is the model of a lease to which these actions may have been done beside those of the history.
func model(maybes []action) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return newWorld() },
		Step: func(w, input, _ interface{}) (bool, interface{}) {
			next := w.(world).next(input.(action), maybes)
			return len(next) > 0, next
		},
		Equal:             func(a, b interface{}) bool { return slices.Equal(a.(world), b.(world)) },
		Hash:              func(w interface{}) uint64 { return w.(world).hash() },
		DescribeOperation: func(input, _ interface{}) string { return input.(action).String() },
		DescribeState:     func(w interface{}) string { return w.(world).String() },
	}
}

func (a action) String() string { return fmt.Sprintf("%s by %s (%d)", a.kind, a.holder, a.id) }
