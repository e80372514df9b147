package main

// THE HISTORY, and what its lines tell the model
//
// A history is a file of JSON lines: what was run, when, and how it ended; nothing in it is an
// interpretation, so that a kept history can be judged again by a better checker. Times are
// nanoseconds of one clock. The first line is the run's:
//
//	{"kind":"run","seed":"7","late":12000000000,"own_code":40,…}
//	    late      how long a request may be on its way after its process has ended
//	    own_code  the exit code of a command that ended by itself under a lease
//	    watched   a watch saw every version of every lease: the holders that it saw there are all
//	    lag       how long after a write, at most, the watch is expected to have told of it
//	{"kind":"command","id":1,"worker":3,"verb":"acquire","leases":["node-1"],"holder":"w3",…,"code":0}
//	    one invocation of the plugin: acquire, renew, release, force-release, run or hold;
//	    "seen" has how many terms of its holder were seen, by lease, and "freed" how often the lease
//	    was seen without a holder after it; "shared" is for a holder's name that others use too
//	{"kind":"beat","id":1,"time":…,"tokens":["17"],"fencing":true}
//	    the command under the leases of invocation 1 lived at that time, and had these tokens:
//	    KUBECTL_LEASE_TOKEN if fencing, else KUBECTL_LEASE_TRANSITIONS
//	{"kind":"renewal","id":1,"lease":"node-1","call":…,"return":…,"until":…}
//	    a renewal by invocation 1 that a watch saw in the lease
//	{"kind":"removal","lease":"node-1","deleted":true,"call":…,"return":…,"code":0}
//	    a third party deleted the lease, or wrote an empty holder; code 3: there was no lease
//	{"kind":"version","lease":"node-1","time":…,"version":17,"uid":"…","holder":"w3#0a1b2c3d",
//	 "acquired":…,"renewed":…,"duration":…,"grace":…,"transitions":4,"deleted":false}
//	    a version of the lease, as the watch told of it at that time, in the watch's order; without
//	    grace if it is one that is taken by watching it (see versions.go); "ahead" is how far the clock
//	    of its holder may be ahead
//	{"kind":"note","text":"…"}
//	    for people
//
// Exit codes. Few of them prove that nothing was done: 4 (held by another), 3 of `renew` (not held)
// and 6 of `release` (an administrator's). All others than 0 leave open what was done, and when: the
// answer to a write may have been lost, the write may still be on its way, and the rollback may have
// failed. But a holder of whom a watch of the lease has never seen a term there has acquired nothing,
// and nothing was released or undone of one after whom the lease was never seen without a holder.
//
// One invocation may take a lease more than once: its first write is done without an answer, the lease
// expires or is taken away before the invocation looks again, and it takes it anew. Where it ran
// long enough for that, or a third party was at the lease meanwhile, the history gets an attempt and
// an undo more for it ("ghosts"), unless the watch saw no more terms of its holder than it told of. No
// command runs under these.
//
// After a removal the command under the lease may live on until the lease that it had would have
// expired (it is ended within two seconds where the plugin may watch and the server answers, but that
// is not this checker's business). The fencing token protects there.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/anishathalye/porcupine"
)

type record struct {
	Kind string `json:"kind"`

	Seed    string `json:"seed,omitempty"`
	Late    int64  `json:"late,omitempty"`
	OwnCode int    `json:"own_code,omitempty"`
	Watched bool   `json:"watched,omitempty"`

	Id       int      `json:"id,omitempty"`
	Worker   int      `json:"worker,omitempty"`
	Verb     string   `json:"verb,omitempty"`
	Leases   []string `json:"leases,omitempty"`
	Holder   string   `json:"holder,omitempty"`
	Admin    bool     `json:"admin,omitempty"`
	Duration int64    `json:"duration,omitempty"`
	Grace    int64    `json:"grace,omitempty"`
	// How far this process's idea of the server's clock may be off.
	Ahead  int64  `json:"ahead,omitempty"`
	Behind int64  `json:"behind,omitempty"`
	Call   int64  `json:"call,omitempty"`
	Return int64  `json:"return,omitempty"`
	Code   int    `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"`
	// The plugin warned that it could not release the lease.
	Unreleased bool           `json:"unreleased,omitempty"`
	Seen       map[string]int `json:"seen,omitempty"`
	Freed      map[string]int `json:"freed,omitempty"`
	Shared     bool           `json:"shared,omitempty"`
	Said       string         `json:"said,omitempty"`

	Time    int64    `json:"time,omitempty"`
	Tokens  []string `json:"tokens,omitempty"`
	Fencing bool     `json:"fencing,omitempty"`

	Lease   string `json:"lease,omitempty"`
	Until   int64  `json:"until,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`

	Lag         int64  `json:"lag,omitempty"`
	Version     uint64 `json:"version,omitempty"`
	Uid         string `json:"uid,omitempty"`
	Acquired    int64  `json:"acquired,omitempty"`
	Renewed     int64  `json:"renewed,omitempty"`
	Transitions int    `json:"transitions,omitempty"`

	Text string `json:"text,omitempty"`
}

type history struct {
	run      record
	commands map[int]*invocation
	order    []int
	renewals []record
	removals map[string][]record
	versions map[string][]record
}

type invocation struct {
	record
	beats []record
}

// read reads a history; an error is a history that cannot be judged.
func read(from io.Reader) (*history, error) {
	h := &history{commands: map[int]*invocation{}, removals: map[string][]record{}, versions: map[string][]record{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var beats []record
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r record
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if r.Return < r.Call {
			return nil, fmt.Errorf("line %d: returns before it is called", n)
		}
		switch r.Kind {
		case "run":
			h.run = r
		case "command":
			if r.Id <= 0 || h.commands[r.Id] != nil {
				return nil, fmt.Errorf("line %d: id %d is not one of its own", n, r.Id)
			}
			if len(r.Leases) == 0 || r.Code == 2 {
				return nil, fmt.Errorf("line %d: %s is not used as it is meant to be: %s", n, r.Verb, r.Said)
			}
			h.commands[r.Id] = &invocation{record: r}
			h.order = append(h.order, r.Id)
		case "beat":
			beats = append(beats, r)
		case "renewal":
			h.renewals = append(h.renewals, r)
		case "removal":
			// What found nothing did nothing.
			if r.Code != 3 {
				h.removals[r.Lease] = append(h.removals[r.Lease], r)
			}
		case "version":
			if all := h.versions[r.Lease]; len(all) > 0 && all[len(all)-1].Version >= r.Version {
				return nil, fmt.Errorf("line %d: version %d is not newer than the one before", n, r.Version)
			}
			h.versions[r.Lease] = append(h.versions[r.Lease], r)
		case "note":
		default:
			return nil, fmt.Errorf("line %d: what is a %q?", n, r.Kind)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, b := range beats {
		c := h.commands[b.Id]
		switch {
		case c == nil:
			return nil, fmt.Errorf("a beat of %d, which was never run", b.Id)
		case len(b.Tokens) != len(c.Leases):
			return nil, fmt.Errorf("%d has %d leases but %d tokens", b.Id, len(c.Leases), len(b.Tokens))
		case b.Time < c.Call:
			return nil, fmt.Errorf("%d beats before it is called: the clock was set", b.Id)
		}
		c.beats = append(c.beats, b)
	}
	for _, c := range h.commands {
		sort.Slice(c.beats, func(i, j int) bool { return c.beats[i].Time < c.beats[j].Time })
	}
	// A release by force is a third party's too. What was refused, or found nothing, did nothing.
	for _, id := range h.order {
		if c := h.commands[id]; c.Verb == "force-release" && c.Code != 3 && c.Code != 4 && c.Code != 6 {
			for _, lease := range c.Leases {
				h.removals[lease] = append(h.removals[lease], c.record)
			}
		}
	}
	return h, nil
}

// The beats of one term that the model is given, at most.
const mostBeats = 6

// actions tells what the history means, lease by lease.
func (h *history) actions() (map[string][]action, error) {
	leases := map[string][]action{}
	add := func(a action) { leases[a.lease] = append(leases[a.lease], a) }
	for _, id := range h.order {
		c := h.commands[id]
		for _, lease := range c.Leases {
			actions, err := h.of(c, lease)
			if err != nil {
				return nil, err
			}
			for _, a := range actions {
				if !a.maybe || h.possible(c, a) {
					add(a)
				}
			}
		}
	}
	for _, r := range h.renewals {
		c := h.commands[r.Id]
		if c == nil {
			return nil, fmt.Errorf("a renewal of %d, which was never run", r.Id)
		}
		add(action{kind: renewed, lease: r.Lease, id: r.Id, holder: process(c), call: r.Call, ret: r.Return, until: r.Until})
	}
	for lease, removals := range h.removals {
		unclear := 0
		for _, r := range removals {
			a := action{
				kind: takeAway, lease: lease, id: r.Id, holder: "a third party", spares: r.Verb == "force-release",
				maybe: r.Code != 0, call: r.Call, ret: h.landed(r),
			}
			if !a.maybe {
				add(a)
				continue
			}
			if unclear == 64 {
				return nil, fmt.Errorf("%s: over 64 removals of unknown outcome", lease)
			}
			a.once = 1 << unclear
			unclear++
			for _, a := range h.seenTakenAway(a, r) {
				add(a)
			}
		}
	}
	for lease, actions := range leases {
		ends := h.ends(lease)
		for n := range actions {
			actions[n].ends = ends
		}
	}
	return leases, nil
}

// ends tells how long what happens to a lease can matter.
func (h *history) ends(lease string) *ends {
	ends := &ends{lives: map[string]int64{}}
	for _, c := range h.commands {
		if len(c.beats) > 0 {
			ends.lives[process(c)] = c.beats[len(c.beats)-1].Time
		}
	}
	for _, r := range h.removals[lease] {
		if r.Code != 0 {
			ends.once = append(ends.once, h.landed(r))
		}
	}
	return ends
}

// possible tells whether what may have been done can have been done, as far as that is known.
func (h *history) possible(c *invocation, a action) bool {
	switch {
	case !h.run.Watched:
		return true
	case c.Shared:
		// A name that others use too was seen: but not at any time.
		return len(h.versions[a.lease]) == 0 || h.seenDone(c.Holder, a)
	}
	if a.kind == acquire {
		return c.Seen[a.lease] > 0
	}
	return c.Freed[a.lease] > 0
}

// terms is how often, at most, the holder of an invocation took the lease, as far as that is known.
func (h *history) terms(c *invocation, lease string) int {
	if h.run.Watched && !c.Shared {
		return c.Seen[lease]
	}
	return math.MaxInt
}

// landed is when a removal was done at the latest.
func (h *history) landed(r record) int64 {
	if r.Code != 0 {
		return r.Return + h.run.Late
	}
	return r.Return
}

// process is the holder that one process is.
func process(c *invocation) string { return fmt.Sprintf("%s#%d", c.Holder, c.Id) }

// of tells what one invocation means for one of its leases.
func (h *history) of(c *invocation, lease string) ([]action, error) {
	base := action{
		lease: lease, id: c.Id, holder: c.Holder, call: c.Call, ret: c.Return,
		lasts: c.Duration + c.Grace - c.Behind, ahead: c.Ahead,
	}
	if c.Admin {
		base.plain, base.holder = c.Holder, "kubeadm:"+c.Holder
	}
	as := func(k kind) action { a := base; a.kind = k; return a }
	// What may or may not have been done, and may still be.
	unclear := func(k kind) action {
		a := as(k)
		a.maybe, a.ret = true, c.Return+h.run.Late
		return a
	}
	switch c.Verb {
	case "acquire", "renew":
		switch {
		case c.Code == 0:
			return append(h.ghosts(c, lease, base, 1), as(acquire)), nil
		case c.Code == 4 && len(c.Leases) == 1:
			return append(h.ghosts(c, lease, base, 0), as(held)), nil
		case c.Code == 3 && c.Verb == "renew":
			return []action{as(notHeld)}, nil
		case c.Verb == "renew":
			return []action{unclear(acquire)}, nil
		}
		return []action{unclear(acquire), unclear(undo)}, nil
	case "release":
		switch {
		case c.Code == 0:
			return []action{as(release)}, nil
		case (c.Code == 4 || c.Code == 6) && len(c.Leases) > 1:
			// All are looked at before any is written: nothing was, and which of them is another's is not told.
			return nil, nil
		case c.Code == 4:
			return []action{as(held)}, nil
		case c.Code == 6:
			return []action{as(adminHeld)}, nil
		}
		// Not done where the lease is another's.
		return []action{unclear(end)}, nil
	case "force-release":
		// See the removals.
		if c.Code == 6 {
			return []action{as(adminHeld)}, nil
		}
		return nil, nil
	case "run", "hold":
		base.holder = process(c)
		if len(c.beats) > 0 {
			return h.term(c, lease, base), nil
		}
		switch {
		case c.Code == h.run.OwnCode:
			return nil, fmt.Errorf("the command of %d ended without a beat", c.Id)
		case c.Code == 4 && len(c.Leases) == 1:
			return append(h.ghosts(c, lease, base, 0), as(held)), nil
		}
		return []action{unclear(acquire), unclear(end)}, nil
	}
	return nil, fmt.Errorf("what does %q do?", c.Verb)
}

// term is an invocation whose command ran under the lease.
func (h *history) term(c *invocation, lease string, base action) []action {
	first, last := c.beats[0].Time, c.beats[len(c.beats)-1].Time
	taking := base
	taking.kind, taking.ret = acquire, max(first, c.Call)
	actions := append(h.ghosts(c, lease, taking, 1), taking)
	for i, b := range c.beats {
		// The first and the last, and some between.
		if i != 0 && i != len(c.beats)-1 && i*(mostBeats-1)/len(c.beats) == (i-1)*(mostBeats-1)/len(c.beats) {
			continue
		}
		a := base
		a.kind, a.call, a.ret, a.duration = beat, b.Time, b.Time, c.Duration
		actions = append(actions, a)
	}
	if last > c.Return {
		// It was killed before its command had ended: it cannot have released anything.
		return actions
	}
	letting := base
	letting.kind, letting.call, letting.ret = end, last, c.Return
	if c.Code != h.run.OwnCode || c.Unreleased {
		letting.maybe, letting.call, letting.ret = true, first, letting.ret+h.run.Late
	}
	return append(actions, letting)
}

// ghosts are what an invocation may have done beside what it told of: so many terms.
func (h *history) ghosts(c *invocation, lease string, base action, told int) []action {
	if min(h.terms(c, lease), h.termsSeen(c.Holder, lease, base.call, base.ret+h.run.Late)) <= told {
		return nil
	}
	count := 0
	if base.lasts > 0 {
		count = int(min((base.ret-base.call)/base.lasts, 3))
	}
	ret := base.ret
	for _, r := range h.removals[lease] {
		if base.call <= h.landed(r) && r.Call <= base.ret+h.run.Late {
			// A create that comes late finds no newer version that would refuse it.
			count++
			ret = base.ret + h.run.Late
		}
	}
	for _, other := range h.commands {
		overlaps := other.Call <= base.ret && base.call <= other.Return+h.run.Late
		if other.Verb == "release" && other.Holder == c.Holder && overlaps && slices.Contains(other.Leases, lease) {
			count++
		}
	}
	var actions []action
	for range count {
		attempt, rollback := base, base
		attempt.kind, attempt.maybe, attempt.ret, attempt.ghost = acquire, true, ret, true
		rollback.kind, rollback.maybe, rollback.ret = undo, true, ret
		actions = append(actions, attempt, rollback)
	}
	return actions
}

// operations gives porcupine the actions whose outcome is known, and the model the others.
func (h *history) operations(actions []action) (operations []porcupine.Operation, maybes []action) {
	for _, a := range actions {
		if a.maybe {
			maybes = append(maybes, a)
			continue
		}
		client := 0
		if c := h.commands[a.id]; c != nil {
			client = c.Worker
		}
		operations = append(operations, porcupine.Operation{ClientId: client, Input: a, Call: a.call, Return: a.ret})
	}
	return operations, maybes
}

// pretended are the acquisitions that were told of, but never seen.
func (h *history) pretended(actions []action) []action {
	var pretended []action
	for _, a := range actions {
		if a.kind == acquire && !a.maybe && h.terms(h.commands[a.id], a.lease) == 0 {
			pretended = append(pretended, a)
		}
	}
	return pretended
}

// A tokened term is an invocation whose command ran under a lease, with the token that it was given.
type tokened struct {
	*invocation
	token   uint64
	fencing bool
}

func (t tokened) first() int64 { return t.beats[0].Time }

// tokened gives the terms of commands, by lease, in the order of their first beats; and what is wrong
// with a single one.
func (h *history) tokened() (terms map[string][]tokened, wrong []string) {
	terms = map[string][]tokened{}
	for _, id := range h.order {
		c := h.commands[id]
		if len(c.beats) == 0 {
			continue
		}
		for n, lease := range c.Leases {
			first := c.beats[0].Tokens[n]
			token, err := strconv.ParseUint(first, 10, 64)
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: the token of %d is %q", lease, id, first))
				continue
			}
			for _, b := range c.beats {
				if b.Tokens[n] != first {
					wrong = append(wrong, fmt.Sprintf("%s: %d had two tokens: %s, %s", lease, id, first, b.Tokens[n]))
					break
				}
			}
			terms[lease] = append(terms[lease], tokened{c, token, c.beats[0].Fencing})
		}
	}
	for _, all := range terms {
		sort.SliceStable(all, func(i, j int) bool { return all[i].first() < all[j].first() })
	}
	return terms, wrong
}

// tokens checks that of two terms of a lease the later has the greater token.
func (h *history) tokens() []string {
	terms, wrong := h.tokened()
	for lease, terms := range terms {
		for n, later := range terms {
			for _, earlier := range terms[:n] {
				switch {
				case later.token > earlier.token:
				// The count of transitions begins anew with a lease that was deleted.
				case !(earlier.fencing && later.fencing) && h.deletedBefore(lease, later.first()):
				case h.lateStart(lease, earlier, later):
				default:
					wrong = append(wrong, fmt.Sprintf("%s: the token of %d, at %.3fs, is %d; that of %d, at %.3fs, was %d",
						lease, later.Id, seconds(later.first()), later.token, earlier.Id, seconds(earlier.first()), earlier.token))
				}
			}
		}
		if h.run.Watched && len(h.versions[lease]) > 0 {
			wrong = append(wrong, h.tokensSeen(lease, terms)...)
		}
	}
	sort.Strings(wrong)
	return wrong
}

// lateStart tells whether the command that started later may have the older lease: one that was taken
// away before its command had started, while the lease was another's already.
func (h *history) lateStart(lease string, earlier, later tokened) bool {
	return slices.ContainsFunc(h.removals[lease], func(r record) bool {
		return r.Call <= earlier.first() && later.Call <= h.landed(r)
	})
}

func (h *history) deletedBefore(lease string, time int64) bool {
	for _, r := range h.removals[lease] {
		if r.Deleted && r.Call <= time {
			return true
		}
	}
	return false
}
