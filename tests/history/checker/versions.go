package main

// THE VERSIONS OF THE LEASES
//
// A watch tells of every version of a lease, in order. Where it was complete, much can be judged without a
// search, to the second, and whatever the processes said of it:
//
//   - From one holder a lease goes to the next when it was released or deleted, or has expired; or it is
//     renamed by the process that gathered it among several, in the same breath of acquireTime. A
//     maintenance lease is judged by what is written there: the taker's acquireTime, which is its idea
//     of the server's time, is not before renewTime, duration and grace of the version that it
//     replaced. Clocks that differ change nothing about that: both sides are read by the same clock.
//   - Any other lease is taken after it was seen unchanged for its duration. The watch tells of the
//     taker's version after it was written, so it is not told of before the version that it replaced
//     could have been written, and the duration. That version was written after it was sent, which is
//     its renewTime by a clock that may be ahead; and not long before the watch told of it.
//   - An administrator's lease goes to nobody else.
//   - A lease without a holder is not renewed, nor one of a process that ended long ago.
//   - The token of a command is a version of the term under which it runs, and no two commands have
//     the same term.

import (
	"fmt"
	"math"
	"regexp"
	"sort"
	"strings"
)

var ownSuffix = regexp.MustCompile(`#[0-9a-f]{8}$`)

// given is the name that a process was given, of the holder that it wrote: `maint run` adds to it what
// makes it its own.
func given(holder string) string { return ownSuffix.ReplaceAllString(holder, "") }

// nameOf is the name of a holder of the model.
func nameOf(holder string) string { name, _, _ := strings.Cut(holder, "#"); return name }

// isProcess tells whether a holder of the model is a process with a command.
func isProcess(holder string) bool { return strings.Contains(holder, "#") }

const administrator = "kubeadm:"

// A term is what does not change while a lease is renewed.
type term struct {
	uid, holder string
	acquired    int64
	transitions int
}

func (r record) term() term { return term{r.Uid, r.Holder, r.Acquired, r.Transitions} }

// before gives the version that the nth version of a lease replaced; none if that created the lease.
func before(versions []record, n int) (record, bool) {
	if n == 0 || versions[n-1].Deleted {
		return record{}, false
	}
	return versions[n-1], true
}

// each calls for each version of each lease and the one that it replaced, if a watch saw all of them.
func (h *history) each(call func(old, new record)) {
	if !h.run.Watched {
		return
	}
	leases := make([]string, 0, len(h.versions))
	for lease := range h.versions {
		leases = append(leases, lease)
	}
	sort.Strings(leases)
	for _, lease := range leases {
		for n, v := range h.versions[lease] {
			if old, ok := before(h.versions[lease], n); ok {
				call(old, v)
			}
		}
	}
}

// takeovers counts how often one holder followed upon another without a release, and tells of those that
// came too early.
func (h *history) takeovers() (count int, early []string) {
	h.each(func(old, v record) {
		if old.Holder == "" || v.Holder == "" || v.Deleted || old.Uid != v.Uid {
			return
		}
		byWatching := v.Grace == 0
		// Of a maintenance lease the same holder is the same: those that are not have names of their own.
		if old.Holder == v.Holder && (!byWatching || old.term() == v.term()) {
			return
		}
		if strings.TrimPrefix(old.Holder, administrator) == strings.TrimPrefix(v.Holder, administrator) && old.Holder != v.Holder {
			// Promoted to an administrator's, or back again.
			return
		}
		if old.Holder != given(old.Holder) && given(old.Holder) == strings.TrimPrefix(v.Holder, administrator) && old.Acquired == v.Acquired {
			// One of several, held under a name of the process until all were had.
			return
		}
		count++
		tell := func(format string, args ...any) {
			early = append(early, fmt.Sprintf("%s: %s took it from %s in version %d at %.3fs, ", v.Lease, v.Holder, old.Holder, v.Version, seconds(v.Time))+
				fmt.Sprintf(format, args...))
		}
		switch {
		case strings.HasPrefix(old.Holder, administrator):
			tell("who is an administrator")
		case byWatching:
			written := max(old.Renewed-old.Ahead, old.Time-h.run.Lag)
			if v.Time < written+old.Duration {
				tell("which was renewed at %.3fs for %.0fs and seen at %.3fs", seconds(old.Renewed), seconds(old.Duration), seconds(old.Time))
			}
		case v.Acquired < old.Renewed+old.Duration+old.Grace:
			tell("acquired at %.3fs, but it was renewed at %.3fs for %.0fs and %.0fs of grace",
				seconds(v.Acquired), seconds(old.Renewed), seconds(old.Duration), seconds(old.Grace))
		}
	})
	return count, early
}

// wrongRenewals tells of renewals that nobody can have been entitled to.
func (h *history) wrongRenewals() []string {
	var wrong []string
	h.each(func(old, v record) {
		if old.Holder == "" && v.Holder == "" && !v.Deleted && old.Acquired == v.Acquired && old.Renewed != v.Renewed {
			wrong = append(wrong, fmt.Sprintf("%s: it was renewed without a holder in version %d at %.3fs", v.Lease, v.Version, seconds(v.Time)))
		}
	})
	for _, r := range h.renewals {
		c := h.commands[r.Id]
		switch {
		case c == nil:
		case r.Call > c.Return+h.run.Late:
			wrong = append(wrong, fmt.Sprintf("%s: %d renewed it at %.3fs, but had ended at %.3fs", r.Lease, r.Id, seconds(r.Call), seconds(c.Return)))
		case r.Duration != 0 && r.Duration != c.Duration:
			wrong = append(wrong, fmt.Sprintf("%s: %d renewed it at %.3fs for %.0fs, but for %.0fs was asked",
				r.Lease, r.Id, seconds(r.Call), seconds(r.Duration), seconds(c.Duration)))
		}
	}
	return wrong
}

// tokensSeen checks that each token is a version of a term of its process, and of no other's.
func (h *history) tokensSeen(lease string, terms []tokened) []string {
	var wrong []string
	versions := h.versions[lease]
	owners := map[term]int{}
	for _, t := range terms {
		if !t.fencing {
			continue
		}
		// The first that is newer.
		n := sort.Search(len(versions), func(n int) bool { return versions[n].Version > t.token })
		if n == 0 || versions[n-1].Deleted || given(versions[n-1].Holder) != t.Holder {
			wrong = append(wrong, fmt.Sprintf("%s: that of %d is %d, which is no version of a lease of %s", lease, t.Id, t.token, t.Holder))
			continue
		}
		if owner, taken := owners[versions[n-1].term()]; taken {
			wrong = append(wrong, fmt.Sprintf("%s: those of %d and %d are of one term", lease, owner, t.Id))
		}
		owners[versions[n-1].term()] = t.Id
	}
	return wrong
}

// seenTakenAway gives what a take-away of unknown outcome can have been, by what the watch saw: one for
// each time that the lease lost its holder by then, or was deleted. What the plugin releases has the time
// at which it did, by its clock. All of it if there was no watch.
func (h *history) seenTakenAway(a action, r record) []action {
	if !h.run.Watched {
		return []action{a}
	}
	var seen []action
	h.each(func(old, v record) {
		emptied := v.Deleted == r.Deleted && (r.Deleted || v.Holder == "") && old.Holder != ""
		if r.Verb == "force-release" {
			emptied = emptied && r.Call-r.Behind <= v.Renewed && v.Renewed <= r.Return+r.Ahead
		}
		if v.Lease == a.lease && emptied && a.call <= v.Time && v.Time <= a.ret+h.run.Lag {
			one := a
			one.frees, one.ret = given(old.Holder), min(a.ret, v.Time)
			seen = append(seen, one)
		}
	})
	return seen
}

// seenDone tells whether something of unknown outcome can have been done by a holder of that name, by what
// the watch saw.
func (h *history) seenDone(name string, a action) bool {
	done := false
	for n, v := range h.versions[a.lease] {
		inTime := a.call <= v.Time && v.Time <= a.ret+h.run.Lag
		if a.kind == acquire {
			done = done || (inTime && !v.Deleted && given(v.Holder) == name)
			continue
		}
		old, ok := before(h.versions[a.lease], n)
		done = done || (inTime && ok && v.Holder == "" && !v.Deleted && given(old.Holder) == name)
	}
	return done
}

// termsSeen is how many terms the watch saw of holders of that name meanwhile.
func (h *history) termsSeen(name, lease string, from, to int64) int {
	if !h.run.Watched || len(h.versions[lease]) == 0 {
		return math.MaxInt
	}
	seen := map[term]bool{}
	for _, v := range h.versions[lease] {
		if from <= v.Time && v.Time <= to+h.run.Lag && strings.TrimPrefix(given(v.Holder), administrator) == name {
			seen[v.term()] = true
		}
	}
	return len(seen)
}
