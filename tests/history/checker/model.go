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
//	floor   an instant that has passed: that of the last takeover by expiry. Steps have no time of
//	        their own, but an operation that returned before the floor cannot come after it.
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
//	beat        the command under the lease lives: the lease is that process's.
//	renewed     a renewal by a process was seen in the lease: it is that process's, and until grows.
//
// An operation whose outcome is not known may have been done or not, and may be done after its process
// has ended: each step has both outcomes, and its return is as much later as a request may be on its
// way (see history.go).

import (
	"fmt"

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
}

var free = state{}

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
func (s state) freed() state { return state{floor: s.floor} }

// step gives the states in which an action can leave a lease; none where it is not legal.
func step(s state, a action) []state {
	if a.ret < s.floor {
		return nil
	}
	var next []state
	switch a.kind {
	case acquire:
		next = acquired(s, a)
	case held:
		if s.holder != "" && !a.mine(s) {
			next = []state{s}
		}
	case notHeld:
		if s.holder == "" {
			next = []state{s}
		}
	case release:
		if s.holder == "" || a.mine(s) {
			next = []state{s.freed()}
		}
	case adminHeld:
		if s.admin {
			next = []state{s}
		}
	case end:
		if a.mine(s) {
			next = []state{s.freed()}
		} else {
			next = []state{s}
		}
	case undo:
		if s.holder != "" && s.writer == a.id {
			next = []state{s.freed()}
		} else {
			next = []state{s}
		}
	case takeAway:
		if !a.spares || !s.admin {
			next = []state{s.freed()}
		}
	case beat:
		if a.mine(s) {
			next = []state{s}
		}
	case renewed:
		if a.mine(s) {
			s.until = max(s.until, a.until)
			s.writer = 0
			next = []state{s}
		}
	}
	if a.maybe {
		next = append(next, s)
	}
	return next
}

func acquired(s state, a action) []state {
	floor := s.floor
	began := true
	switch {
	case s.holder == "":
	case a.mine(s):
		// Whoever was told that they hold it may count on it until it expires.
		began = a.ret >= s.until && !s.admin
	case s.admin:
		return nil
	default:
		expired := s.until - a.ahead
		if a.ret < expired {
			return nil
		}
		floor = max(floor, expired)
	}
	next := state{holder: a.holder, admin: a.admin(), floor: floor}
	if !next.admin {
		next.until = max(floor, a.call) + a.lasts
	}
	if began && a.maybe {
		next.writer = a.id
	}
	return []state{next}
}

func model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{free} },
		Step: func(s, input, _ interface{}) []interface{} {
			var next []interface{}
			for _, one := range step(s.(state), input.(action)) {
				next = append(next, one)
			}
			return next
		},
		DescribeOperation: func(input, _ interface{}) string { return input.(action).String() },
		DescribeState:     func(s interface{}) string { return s.(state).String() },
	}
	return nondeterministic.ToModel()
}

func (a action) String() string {
	text := fmt.Sprintf("%s by %s (%d)", a.kind, a.holder, a.id)
	if a.maybe {
		text += "?"
	}
	return text
}
