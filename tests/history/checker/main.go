// Judges a history of lease operations: whether there is an order in which all of them could have
// been done to one lease after the other, by the rules of model.go.
//
//	history [-timeout 180s] HISTORY
//
// Exit code 0: there is. 1: there is none; what could not be explained is told, and porcupine's
// picture of it is written beside the history. 2: bad input, or undecided within the time.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

func main() {
	timeout := flag.Duration("timeout", 3*time.Minute, "the time to spend on one lease")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: history [-timeout 180s] HISTORY\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	file, err := os.Open(flag.Arg(0))
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(2)
	}
	h, err := read(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %s: %v\n", flag.Arg(0), err)
		os.Exit(2)
	}
	os.Exit(judge(h, *timeout, flag.Arg(0), os.Stdout))
}

// The counts of a history, for whoever wants to know whether anything happened in it.
type counts struct {
	Invocations int `json:"invocations"`
	Leases      int `json:"leases"`
	// Acquisitions that were told of, and by how many holders.
	Acquired int `json:"acquired"`
	Holders  int `json:"holders"`
	Held     int `json:"held"`
	Released int `json:"released"`
	Unclear  int `json:"unclear"`
	Terms    int `json:"terms"`
	Beats    int `json:"beats"`
	Renewals int `json:"renewals"`
	Removals int `json:"removals"`
	// Changes from one holder to another without a release, of complete watches.
	Takeovers int `json:"takeovers"`
	// Operations that porcupine was given.
	Operations int `json:"operations"`
}

// judge tells the verdict and the counts, and returns the exit code.
func judge(h *history, timeout time.Duration, path string, out io.Writer) int {
	actions, err := h.actions()
	if err != nil {
		fmt.Fprintf(out, "error: %v\n", err)
		return 2
	}
	leases := make([]string, 0, len(actions))
	for lease := range actions {
		leases = append(leases, lease)
	}
	sort.Strings(leases)
	count := h.count(actions)
	verdict := 0
	for _, lease := range leases {
		operations, maybes := h.operations(actions[lease])
		rules := model(maybes)
		result, info := porcupine.CheckOperationsVerbose(rules, operations, timeout)
		switch result {
		case porcupine.Illegal:
			verdict = 1
			picture := path + "." + lease + ".html"
			fmt.Fprintf(out, "%s: not linearizable\n%s", lease, h.unexplained(info, actions[lease], maybes))
			if err := porcupine.VisualizePath(rules, info, picture); err != nil {
				fmt.Fprintf(out, "  no picture: %v\n", err)
			} else {
				fmt.Fprintf(out, "  picture: %s\n", picture)
			}
		case porcupine.Unknown:
			fmt.Fprintf(out, "%s: undecided after %s\n", lease, timeout)
			if verdict == 0 {
				verdict = 2
			}
		}
	}
	for _, lease := range leases {
		for _, a := range h.pretended(actions[lease]) {
			verdict = 1
			fmt.Fprintf(out, "%s: told of but never seen in the lease: %s\n", lease, a)
		}
	}
	takeovers, early := h.takeovers()
	count.Takeovers = takeovers
	if wrong := append(early, h.wrongRenewals()...); len(wrong) > 0 {
		verdict = 1
		for _, line := range wrong {
			fmt.Fprintf(out, "seen in the lease: %s\n", line)
		}
	}
	if wrong := h.tokens(); len(wrong) > 0 {
		verdict = 1
		for _, line := range wrong {
			fmt.Fprintf(out, "fencing token: %s\n", line)
		}
	}
	fmt.Fprintf(out, "verdict: %s\n", [...]string{"linearizable", "not linearizable", "undecided"}[verdict])
	text, _ := json.Marshal(count)
	fmt.Fprintf(out, "counts: %s\n", text)
	return verdict
}

func (h *history) count(actions map[string][]action) counts {
	count := counts{Invocations: len(h.commands), Leases: len(actions), Renewals: len(h.renewals)}
	holders := map[string]bool{}
	for _, all := range actions {
		count.Operations += len(all)
		for _, a := range all {
			switch {
			case a.maybe:
			case a.kind == acquire:
				count.Acquired++
				holders[a.holder] = true
			case a.kind == held:
				count.Held++
			case a.kind == release || a.kind == end:
				count.Released++
			case a.kind == takeAway:
				count.Removals++
			}
		}
	}
	count.Holders = len(holders)
	for _, c := range h.commands {
		count.Beats += len(c.beats)
		if len(c.beats) > 0 {
			count.Terms++
		} else if c.Code != 0 && c.Code != 3 && c.Code != 4 && c.Code != 6 {
			count.Unclear++
		}
	}
	return count
}

// unexplained tells of where the longest explanation of a history ends.
func (h *history) unexplained(info porcupine.LinearizationInfo, all, maybes []action) string {
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, partial := range partition {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
	}
	var text strings.Builder
	tell := func(a action) {
		fmt.Fprintf(&text, "    %9.3fs %9.3fs  %s", seconds(a.call), seconds(a.ret), a)
		if c := h.commands[a.id]; c != nil && a.kind != beat {
			fmt.Fprintf(&text, ": %s, exit code %d %s", c.Verb, c.Code, c.Signal)
		}
		text.WriteByte('\n')
	}
	text.WriteString("  explained, the last of it (called, returned at the latest):\n")
	w := newWorld()
	done := map[action]int{}
	for n, operation := range longest {
		a := operation.Input.(action)
		done[a]++
		if n >= len(longest)-15 {
			tell(a)
		}
		w = w.next(a, maybes)
	}
	fmt.Fprintf(&text, "  then the lease is %s\n", w)
	var left []action
	for _, a := range all {
		if done[a] > 0 {
			done[a]--
		} else if !a.maybe {
			left = append(left, a)
		}
	}
	sort.SliceStable(left, func(i, j int) bool { return left[i].ret < left[j].ret })
	text.WriteString("  not explained, the first of it:\n")
	for _, a := range left[:min(len(left), 8)] {
		tell(a)
	}
	text.WriteString("  and might have been done about then:\n")
	for _, a := range maybes {
		if len(left) > 0 && a.call <= left[0].ret && a.ret >= left[0].call-10e9 {
			tell(a)
		}
	}
	return text.String()
}
