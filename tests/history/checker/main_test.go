package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	s   = int64(time.Second)
	own = 40
)

func at(seconds float64) int64 { return int64(seconds * 1e9) }

// A line of a history; the leases of the tests last 10 s, and 3 s more if they are of maintenance.
type line = record

func command(id int, verb, holder string, call, ret float64, code int) line {
	return line{
		Kind: "command", Id: id, Worker: id, Verb: verb, Leases: []string{"x"}, Holder: holder,
		Duration: 10 * s, Grace: 3 * s, Call: at(call), Return: at(ret), Code: code,
	}
}

func hold(id int, call, ret float64, code int) line {
	c := command(id, "hold", "job", call, ret, code)
	c.Grace = 0
	return c
}

func admin(c line) line                        { c.Admin = true; return c }
func unreleased(c line) line                   { c.Unreleased = true; return c }
func on(leases string, c line) line            { c.Leases = strings.Split(leases, ","); return c }
func clock(ahead, behind float64, c line) line { c.Ahead, c.Behind = at(ahead), at(behind); return c }

func shared(c line) line            { c.Shared = true; return c }
func has(lease string, c line) line { c.Seen = map[string]int{lease: 1}; return c }

func freed(c line) line { c.Seen, c.Freed = map[string]int{"x": 1}, map[string]int{"x": 1}; return c }

var watched = line{Kind: "run", Seed: "1", Late: late * s, OwnCode: own, Watched: true}

func lives(id int, time float64, tokens ...string) line {
	if len(tokens) == 0 {
		tokens = []string{"1"}
	}
	return line{Kind: "beat", Id: id, Time: at(time), Tokens: tokens, Fencing: true}
}

func transitions(b line) line { b.Fencing = false; return b }

func seen(id int, call, ret, until float64) line {
	return line{Kind: "renewal", Id: id, Lease: "x", Call: at(call), Return: at(ret), Until: at(until)}
}

func removal(call, ret float64, code int) line {
	return line{Kind: "removal", Lease: "x", Deleted: true, Call: at(call), Return: at(ret), Code: code}
}

func forced(call, ret float64) line {
	r := removal(call, ret, 0)
	r.Deleted = false
	return r
}

// wrote is a version of a maintenance lease that was seen the moment it was written.
func wrote(version uint64, holder string, acquired, renewed float64) line {
	return line{
		Kind: "version", Lease: "x", Time: at(renewed), Version: version, Uid: "u", Holder: holder,
		Acquired: at(acquired), Renewed: at(renewed), Duration: 10 * s, Grace: 3 * s,
	}
}

func plain(v line) line                    { v.Grace = 0; return v }
func told(time float64, v line) line       { v.Time = at(time); return v }
func gone(v line) line                     { v.Deleted = true; return v }
func anew(v line) line                     { v.Uid = "v"; return v }
func by(holder string, c line) line        { c.Holder = holder; return c }
func lasting(seconds float64, r line) line { r.Duration = at(seconds); return r }

func lagging(lag float64) line { run := watched; run.Lag = at(lag); return run }

const (
	legal   = 0
	illegal = 1
	bad     = 2
)

// What a process sent may be on its way for so many seconds after its end.
const late = 5

var histories = []struct {
	name    string
	verdict int
	lines   []line
}{
	{"nothing", legal, nil},
	{"one after the other", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "a", 2, 3, 0),
		command(3, "acquire", "b", 4, 5, 0), command(4, "renew", "b", 10, 11, 0), command(5, "release", "b", 12, 13, 0)}},
	{"two holders", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 2, 3, 0)}},
	{"two holders at once", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 0, 1, 0)}},
	{"two at once, and one is told so", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 0, 1, 4)}},
	{"the holder again", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "a", 2, 3, 0)}},
	{"other leases are other leases", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), on("y", command(2, "acquire", "b", 0, 1, 0))}},

	// Answers
	{"held, by nobody", illegal, []line{command(1, "acquire", "a", 0, 1, 4)}},
	{"held, after a release", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "a", 2, 3, 0), command(3, "acquire", "b", 4, 5, 4)}},
	{"held, by the holder itself", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "a", 2, 3, 4)}},
	{"nothing to renew", legal, []line{command(1, "renew", "a", 0, 1, 3)}},
	{"nothing to renew, while it is held", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "renew", "a", 2, 3, 3)}},
	{"renewed, while another holds it", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "renew", "b", 2, 3, 0)}},

	// Release
	{"another's release", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "b", 2, 3, 0)}},
	{"another's release that is refused", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "b", 2, 3, 4), command(3, "acquire", "b", 4, 5, 4)}},
	{"another's release that is refused and done", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "b", 2, 3, 4), command(3, "acquire", "b", 4, 5, 0)}},
	{"a release that failed releases nothing of another's", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "b", 2, 3, 1), command(3, "acquire", "b", 4, 5, 0)}},
	{"a release of several of which another is another's", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), on("y", command(2, "acquire", "b", 0, 1, 0)),
		on("x,y", command(3, "release", "a", 2, 3, 4)), command(4, "acquire", "b", 4, 5, 4)}},
	{"a release of several of which another is another's does nothing", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), on("y", command(2, "acquire", "b", 0, 1, 0)),
		on("x,y", command(3, "release", "a", 2, 3, 4)), command(4, "acquire", "b", 4, 5, 0)}},
	{"a release of what is free", legal, []line{command(1, "release", "a", 0, 1, 0)}},

	// Expiry
	{"takeover after the duration and the grace", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 12, 13, 0)}},
	{"takeover before the grace is over", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 11, 12.9, 0)}},
	{"takeover before a renewal's time is over", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "renew", "a", 9, 10, 0), command(3, "acquire", "b", 14, 15, 0)}},
	{"takeover by a fast clock from a slow one", legal, []line{
		clock(0, 1, command(1, "acquire", "a", 0, 1, 0)), clock(2, 0, command(2, "acquire", "b", 9, 10, 0))}},
	{"takeover by a fast clock, too early for it", illegal, []line{
		clock(0, 1, command(1, "acquire", "a", 0, 1, 0)), clock(2, 0, command(2, "acquire", "b", 9, 9.9, 0))}},
	{"held, though expired and not yet taken", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 14, 15, 4)}},
	{"an answer from before a takeover cannot come after it", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 11, 14, 0), command(3, "release", "b", 11, 12, 0)}},
	{"the old holder after a takeover", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 13, 14, 0), command(3, "renew", "a", 15, 16, 0)}},

	// Administrators
	{"an administrator's lease does not expire", illegal, []line{
		admin(command(1, "acquire", "a", 0, 1, 0)), command(2, "acquire", "b", 1000, 1001, 0)}},
	{"an administrator's lease, told so", legal, []line{
		admin(command(1, "acquire", "a", 0, 1, 0)), command(2, "acquire", "b", 1000, 1001, 4),
		command(3, "release", "b", 1002, 1003, 6), command(4, "release", "a", 1004, 1005, 6),
		command(5, "acquire", "a", 1006, 1007, 4), admin(command(6, "release", "b", 1008, 1009, 4)),
		admin(command(7, "release", "a", 1010, 1011, 0)), command(8, "acquire", "b", 1012, 1013, 0)}},
	{"an administrator's lease released without being one", illegal, []line{
		admin(command(1, "acquire", "a", 0, 1, 0)), command(2, "release", "a", 2, 3, 0)}},
	{"refused for an administrator who is none", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "b", 2, 3, 6)}},
	{"an administrator takes what is their own, and no other's", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), admin(command(2, "acquire", "a", 2, 3, 0)),
		admin(command(3, "acquire", "b", 4, 5, 4)), admin(command(4, "release", "a", 6, 7, 0))}},
	{"an administrator takes another's", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), admin(command(2, "acquire", "b", 2, 3, 0))}},
	{"an administrator takes over what expired", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), admin(command(2, "acquire", "b", 14, 15, 0)), command(3, "acquire", "c", 99, 100, 4)}},

	// Unknown outcomes
	{"killed, done", legal, []line{command(1, "acquire", "a", 0, 1, 137), command(2, "acquire", "b", 2, 3, 4)}},
	{"killed, not done", legal, []line{command(1, "acquire", "a", 0, 1, 137), command(2, "acquire", "b", 2, 3, 0)}},
	{"killed, done late", legal, []line{
		command(1, "acquire", "a", 0, 1, 137), command(2, "acquire", "b", 2, 3, 0), command(3, "release", "b", 3, 4, 0),
		command(4, "acquire", "b", 5, 6, 4)}},
	{"killed, done later than can be", illegal, []line{
		command(1, "acquire", "a", 0, 1, 137), command(2, "acquire", "b", 2, 3, 0), command(3, "release", "b", 7, 8, 0),
		command(4, "acquire", "b", 9, 10, 4)}},
	{"killed, and done to what another holds", illegal, []line{
		command(1, "acquire", "b", 0, 1, 0), command(2, "acquire", "a", 2, 3, 137), command(3, "release", "a", 4, 5, 0)}},
	{"killed, undone by itself", legal, []line{
		command(1, "acquire", "a", 0, 3, 130), command(2, "acquire", "b", 1, 2, 4), command(3, "acquire", "b", 4, 5, 0)}},
	{"two killed, only one of which is known to be done", legal, []line{
		command(1, "acquire", "a", 0, 1, 137), command(2, "acquire", "b", 0, 1, 137), command(3, "acquire", "a", 2, 3, 4)}},
	{"killed, and never seen", illegal, []line{
		watched, command(1, "acquire", "a", 0, 1, 137), has("x", command(2, "acquire", "b", 2, 3, 4))}},
	{"killed, and seen", legal, []line{
		watched, has("x", command(1, "acquire", "a", 0, 1, 137)), command(2, "acquire", "b", 2, 3, 4)}},
	{"killed, and its name not its own", legal, []line{
		watched, shared(command(1, "acquire", "a", 0, 1, 137)), command(2, "acquire", "b", 2, 3, 4)}},
	{"told of, and never seen", illegal, []line{watched, command(1, "acquire", "a", 0, 1, 0)}},
	{"told of, and seen elsewhere", illegal, []line{watched, has("y", on("x,y", command(1, "acquire", "a", 0, 1, 0)))}},
	{"a renewal whose outcome is not known", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "renew", "a", 9, 10, 1), command(3, "acquire", "b", 13, 14, 0)}},
	{"a renewal whose outcome is not known was done", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "renew", "a", 9, 10, 1), command(3, "acquire", "b", 14, 15, 4),
		command(4, "renew", "a", 16, 17, 0)}},
	{"a release whose outcome is not known", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "release", "a", 2, 3, 130), command(3, "acquire", "b", 4, 5, 4),
		command(4, "acquire", "b", 5, 6, 0)}},
	{"an administrator's attempt, done and for ever", legal, []line{
		admin(command(1, "acquire", "a", 0, 1, 137)), command(2, "acquire", "b", 99, 100, 4)}},
	{"an administrator's attempt, not done", legal, []line{
		admin(command(1, "acquire", "a", 0, 1, 137)), command(2, "acquire", "b", 99, 100, 0)}},
	{"an administrator's attempt, done and taken", illegal, []line{
		admin(command(1, "acquire", "a", 0, 1, 137)), command(2, "acquire", "b", 7, 8, 4), command(3, "acquire", "b", 99, 100, 0)}},

	// Undoing, with a name that several use
	{"an undo of what another process was told", illegal, []line{
		command(1, "acquire", "a", 0, 4, 130), command(2, "acquire", "a", 1, 2, 0), command(3, "acquire", "b", 4.5, 5, 0)}},
	{"an undo before another process is told", legal, []line{
		command(1, "acquire", "a", 0, 4, 130), command(2, "acquire", "a", 1, 2, 0), command(3, "acquire", "b", 4.5, 5, 4)}},
	{"an attempt on what is one's own undoes nothing", illegal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "a", 2, 3, 130), command(3, "acquire", "b", 4, 5, 0)}},
	{"an attempt on what was one's own, and had expired", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "a", 14, 15, 130), command(3, "acquire", "b", 16, 17, 0)}},
	{"released and taken again within one invocation", legal, []line{
		command(1, "acquire", "a", 0, 9, 0), command(2, "acquire", "b", 1, 2, 4), command(3, "release", "a", 3, 4, 0),
		command(4, "acquire", "b", 5, 6, 0), command(5, "release", "b", 7, 8, 0), command(6, "acquire", "b", 10, 11, 4)}},

	{"the same, but seen once", illegal, []line{
		watched, has("x", command(1, "acquire", "a", 0, 9, 0)), command(2, "acquire", "b", 1, 2, 4),
		has("x", command(3, "release", "a", 3, 4, 0)), has("x", command(4, "acquire", "b", 5, 6, 0)),
		command(5, "release", "b", 7, 8, 0), command(6, "acquire", "b", 10, 11, 4)}},

	{"taken without knowing it, lost, and told that it is held", legal, []line{
		watched, has("x", hold(1, 0, 5, 4)), plain(wrote(7, "job", 1, 1)), command(2, "acquire", "b", 1.5, 2, 4), removal(2.5, 3, 0),
		gone(plain(wrote(8, "job", 1, 2.6))), has("x", command(3, "acquire", "c", 3.5, 4, 0)), anew(wrote(9, "c", 3.6, 3.6))}},
	{"never taken, and told that it is held", illegal, []line{
		watched, hold(1, 0, 5, 4), command(2, "acquire", "b", 1.5, 2, 4), removal(2.5, 3, 0),
		has("x", command(3, "acquire", "c", 3.5, 4, 0)), wrote(9, "c", 3.6, 3.6)}},
	{"undone, and seen to be", legal, []line{
		watched, freed(command(1, "acquire", "a", 0, 3, 130)), command(2, "acquire", "b", 1, 2, 4), has("x", command(3, "acquire", "b", 4, 5, 0))}},
	{"undone, and never seen to be", illegal, []line{
		watched, has("x", command(1, "acquire", "a", 0, 3, 130)), command(2, "acquire", "b", 1, 2, 4), has("x", command(3, "acquire", "b", 4, 5, 0))}},

	// Commands under a lease
	{"one after the other holds", legal, []line{
		hold(1, 0, 5, own), lives(1, 1), lives(1, 4), hold(2, 2, 9, own), lives(2, 6, "2"), lives(2, 8, "2")}},
	{"two at once", illegal, []line{
		hold(1, 0, 5, own), lives(1, 1), lives(1, 4), hold(2, 2, 9, own), lives(2, 3, "2"), lives(2, 8, "2")}},
	{"a beat after another's acquisition", illegal, []line{
		hold(1, 0, 5, 137), lives(1, 1), lives(1, 20), hold(2, 9, 30, own), lives(2, 19, "2"), lives(2, 29, "2")}},
	{"killed, and taken after its duration", legal, []line{
		hold(1, 0, 5, 137), lives(1, 1), lives(1, 6), hold(2, 2, 15, own), lives(2, 11, "2"), lives(2, 12, "2")}},
	{"killed, perhaps after it had released", legal, []line{
		hold(1, 0, 0.5, 137), lives(1, 0.3), lives(1, 0.4), hold(2, 6, 15, own), lives(2, 9, "2"), lives(2, 12, "2")}},
	{"killed, and taken before its duration is over", illegal, []line{
		hold(1, 0, 0.5, 137), lives(1, 0.3), lives(1, 0.6), hold(2, 6, 15, own), lives(2, 9, "2"), lives(2, 12, "2")}},
	{"killed after a renewal, and taken before its duration is over", illegal, []line{
		hold(1, 0, 5, 137), lives(1, 1), lives(1, 5.1), seen(1, 4, 4.1, 14),
		hold(2, 11, 15, own), lives(2, 13, "2"), lives(2, 14, "2")}},
	{"killed after a renewal, and taken after that", legal, []line{
		hold(1, 0, 5, 137), lives(1, 1), lives(1, 5.1), seen(1, 4, 4.1, 14),
		hold(2, 12, 18, own), lives(2, 15, "2"), lives(2, 16, "2")}},
	{"of the same name, but not the same", illegal, []line{
		hold(1, 0, 9, own), lives(1, 1), lives(1, 8), hold(2, 2, 7, own), lives(2, 3, "2"), lives(2, 6, "2")}},
	{"a command that ended has released", illegal, []line{
		hold(1, 0, 5, own), lives(1, 1), lives(1, 4), hold(2, 6, 7, 4)}},
	{"a command that ended, and a release that failed", legal, []line{
		unreleased(hold(1, 0, 5, own)), lives(1, 1), lives(1, 4), hold(2, 6, 7, 4)}},
	{"told that it is held, by itself", illegal, []line{hold(1, 0, 1, 4)}},
	{"released by a command that people type", illegal, []line{
		command(1, "run", "a", 0, 9, own), lives(1, 1), lives(1, 8), command(2, "release", "a", 2, 3, 0)}},
	{"two nodes at once", legal, []line{
		on("x,y", command(1, "run", "a", 0, 9, own)), lives(1, 1, "1", "7"), lives(1, 8, "1", "7"),
		command(2, "acquire", "b", 2, 3, 4), on("y", command(3, "acquire", "b", 2, 3, 4))}},
	{"two nodes at once, of which one is another's", illegal, []line{
		on("x,y", command(1, "run", "a", 0, 9, own)), lives(1, 1, "1", "7"), lives(1, 8, "1", "7"),
		on("y", command(2, "acquire", "b", 2, 3, 0))}},
	{"two nodes, told that one is held", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), on("x,y", command(2, "acquire", "b", 2, 3, 4)), on("y", command(3, "acquire", "c", 4, 5, 0))}},

	// Third parties
	{"deleted, and taken at once", legal, []line{
		hold(1, 0, 5, 75), lives(1, 1), lives(1, 4), removal(2, 2.5, 0), hold(2, 2.6, 9, own), lives(2, 3, "2"), lives(2, 8, "2")}},
	{"deleted, and lives on past its duration", illegal, []line{
		hold(1, 0, 30, 75), lives(1, 1), lives(1, 14), removal(2, 2.5, 0), hold(2, 2.6, 20, own), lives(2, 3, "2"), lives(2, 19, "2")}},
	{"released by force, and lives on past its duration", illegal, []line{
		hold(1, 0, 30, 75), lives(1, 1), lives(1, 14), forced(2, 2.5), hold(2, 2.6, 20, own), lives(2, 3, "2"), lives(2, 19, "2")}},
	{"a deletion that failed may have been done", legal, []line{
		hold(1, 0, 5, 75), lives(1, 1), lives(1, 4), removal(2, 2.5, 1), hold(2, 2.6, 9, own), lives(2, 3, "2"), lives(2, 8, "2")}},
	{"released by force with the plugin", legal, []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "force-release", "b", 2, 3, 0), command(3, "acquire", "b", 4, 5, 0)}},
	{"released by force with the plugin, from an administrator", illegal, []line{
		admin(command(1, "acquire", "a", 0, 1, 0)), command(2, "force-release", "b", 2, 3, 0)}},
	{"a force that was refused", legal, []line{
		admin(command(1, "acquire", "a", 0, 1, 0)), command(2, "force-release", "b", 2, 3, 6), command(3, "acquire", "b", 4, 5, 4)}},

	// Third parties whose outcome is not known
	{"a deletion of what is not there lets nobody take it", illegal, []line{
		removal(0, 0.5, 3), command(1, "acquire", "a", 4, 4.5, 0), command(2, "acquire", "b", 6, 6.5, 0)}},
	{"a deletion of what is not there, and one after the other", legal, []line{
		removal(0, 0.5, 3), command(1, "acquire", "a", 4, 4.5, 0), command(2, "release", "a", 5, 5.5, 0), command(3, "acquire", "b", 6, 6.5, 0)}},
	{"a deletion of what is not there excuses no overlap", illegal, []line{
		removal(2, 2.5, 3), hold(1, 0, 5, 75), lives(1, 1), lives(1, 4), hold(2, 2.6, 9, own), lives(2, 3, "2"), lives(2, 8, "2")}},
	{"a failed deletion is done only once", illegal, []line{
		removal(0, 0.5, 1), command(1, "acquire", "a", 1, 1.5, 0), command(2, "acquire", "b", 2, 2.5, 0), command(3, "acquire", "c", 3, 3.5, 0)}},
	{"a failed deletion is done once", legal, []line{
		removal(0, 0.5, 1), command(1, "acquire", "a", 1, 1.5, 0), command(2, "acquire", "b", 2, 2.5, 0)}},
	{"two failed deletions are done twice", legal, []line{
		removal(0, 0.5, 1), removal(0, 0.6, 1), command(1, "acquire", "a", 1, 1.5, 0), command(2, "acquire", "b", 2, 2.5, 0),
		command(3, "acquire", "c", 3, 3.5, 0)}},
	{"killed while it released by force, three holders", illegal, []line{
		command(1, "force-release", "z", 0, 0.5, 137), command(2, "acquire", "a", 1, 1.5, 0), command(3, "acquire", "b", 2, 2.5, 0),
		command(4, "acquire", "c", 3, 3.5, 0)}},
	{"killed while it released by force, and never seen to be", illegal, []line{
		watched, command(1, "force-release", "z", 0, 2, 137),
		has("x", command(2, "acquire", "a", 0, 0.5, 0)), wrote(7, "a", 0.3, 0.3),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), wrote(9, "b", 13.3, 13.3)}},
	{"killed while it released by force, and seen to be", legal, []line{
		watched, command(1, "force-release", "z", 0, 2, 137),
		has("x", command(2, "acquire", "a", 0, 0.5, 0)), wrote(7, "a", 0.3, 0.3), wrote(8, "", 1, 1),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), wrote(9, "b", 3.3, 3.3)}},
	{"killed while it released by force, seen to be, and of another", illegal, []line{
		watched, command(1, "force-release", "z", 0, 9, 137),
		has("x", command(2, "acquire", "a", 0, 0.5, 0)), wrote(7, "a", 0.3, 0.3), wrote(8, "", 1, 1),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), wrote(9, "b", 3.3, 3.3), wrote(10, "", 4, 4),
		has("x", command(4, "acquire", "c", 5, 5.5, 0)), wrote(11, "c", 5.3, 5.3)}},
	{"killed while it released by force, and released by another later", illegal, []line{
		watched, command(1, "force-release", "z", 0, 0.6, 137),
		has("x", command(2, "acquire", "a", 0, 0.5, 0)), wrote(7, "a", 0.3, 0.3), wrote(8, "", 2, 2),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), wrote(9, "b", 3.3, 3.3)}},
	{"killed while it released by force, and seen to be late", legal, []line{
		watched, command(1, "force-release", "z", 0, 0.6, 137),
		has("x", command(2, "acquire", "a", 0, 0.5, 0)), wrote(7, "a", 0.3, 0.3), told(2, wrote(8, "", 0.5, 0.5)),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), wrote(9, "b", 3.3, 3.3)}},
	{"killed while it deleted, and seen without a holder", illegal, []line{
		watched, removal(0, 2, 1), has("x", command(2, "acquire", "a", 0, 0.5, 0)), wrote(7, "a", 0.3, 0.3), wrote(8, "", 1, 1),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), wrote(9, "b", 3.3, 3.3)}},
	{"killed while it deleted, and seen to be", legal, []line{
		watched, removal(0, 2, 1), has("x", command(2, "acquire", "a", 0, 0.5, 0)), wrote(7, "a", 0.3, 0.3), gone(wrote(8, "a", 0.3, 1)),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), anew(wrote(9, "b", 3.3, 3.3))}},
	{"killed while it released by force what an administrator has", illegal, []line{
		watched, command(1, "force-release", "z", 0, 2, 137),
		has("x", admin(command(2, "acquire", "a", 0, 0.5, 0))), wrote(7, "kubeadm:a", 0.3, 0.3), wrote(8, "", 1, 1),
		has("x", command(3, "acquire", "b", 3, 3.5, 0)), wrote(9, "b", 3.3, 3.3)}},

	// After a removal
	{"who got it by a removal is protected", illegal, []line{
		hold(1, 0, 5, 75), lives(1, 1), lives(1, 4), hold(2, 0.5, 9, own), removal(2, 2.5, 0), lives(2, 3, "2"), lives(2, 8, "2"),
		hold(3, 0.5, 9, own), lives(3, 5, "3"), lives(3, 6, "3")}},
	{"evicted before its command had begun", legal, []line{
		hold(1, 0, 5, 75), removal(0.5, 0.7, 0), lives(1, 1), lives(1, 4), hold(2, 0.5, 9, own), lives(2, 0.9, "2"), lives(2, 8, "2")}},
	{"evicted one after the other", legal, []line{
		hold(1, 0, 9, 75), lives(1, 1), lives(1, 8), removal(2, 2.5, 0), hold(2, 0, 9, 75), lives(2, 3, "2"), lives(2, 8.5, "2"),
		forced(4, 4.5), hold(3, 0, 9, own), lives(3, 5, "3"), lives(3, 8.7, "3")}},
	{"an eviction excuses nobody else", illegal, []line{
		hold(1, 0, 9, 75), lives(1, 1), lives(1, 3), removal(4, 4.5, 0), hold(2, 0, 9, 75), lives(2, 2, "2"), lives(2, 3, "2")}},

	// Versions
	{"taken when the grace is over", legal, []line{watched, wrote(7, "a", 0, 1), wrote(8, "b", 14, 14)}},
	{"taken when the duration is over", illegal, []line{watched, wrote(7, "a", 0, 1), wrote(8, "b", 13.9, 13.9)}},
	{"taken when the duration is over, of another process of that name", illegal, []line{
		watched, wrote(7, "a#00000001", 0, 1), wrote(8, "a#00000002", 13.9, 13.9)}},
	{"taken by a clock that is ahead, when that says so", legal, []line{
		watched, wrote(7, "a", 0, 1), told(12, wrote(8, "b", 14, 14))}},
	{"the holder's own again", legal, []line{watched, wrote(7, "a", 0, 1), wrote(8, "a", 2, 2)}},
	{"taken after a release", legal, []line{watched, wrote(7, "a", 0, 1), wrote(8, "", 2, 2), wrote(9, "b", 3, 3)}},
	{"taken after a deletion", legal, []line{
		watched, wrote(7, "a", 0, 1), gone(wrote(8, "a", 0, 1)), anew(wrote(9, "b", 3, 3))}},
	{"taken from an administrator", illegal, []line{watched, wrote(7, "kubeadm:a", 0, 1), wrote(8, "b", 99, 99)}},
	{"gathered, and renamed", legal, []line{watched, wrote(7, "a#0123abcd", 0, 1), wrote(8, "a", 0, 2)}},
	{"gathered, and renamed for an administrator", legal, []line{watched, wrote(7, "a#0123abcd", 0, 1), wrote(8, "kubeadm:a", 0, 2)}},
	{"gathered by one process, and taken by another of its name", illegal, []line{watched, wrote(7, "a#0123abcd", 0, 1), wrote(8, "a", 2, 2)}},
	{"gathered, and renamed to another's name", illegal, []line{watched, wrote(7, "a#0123abcd", 0, 1), wrote(8, "b", 0, 2)}},
	{"renamed to the name of a process", illegal, []line{watched, wrote(7, "a", 0, 1), wrote(8, "a#0123abcd", 0, 2)}},
	{"an administrator takes their own", legal, []line{watched, wrote(7, "a", 0, 1), wrote(8, "kubeadm:a", 2, 2), wrote(9, "a", 0, 1.1)}},
	{"seen for its duration and taken", legal, []line{
		lagging(1), clock(2.5, 0, plain(wrote(7, "a", 0, 1))), plain(wrote(8, "b", 11, 11))}},
	{"seen for less than its duration and taken", illegal, []line{
		lagging(1), plain(wrote(7, "a", 0, 1)), plain(wrote(8, "b", 10.9, 10.9))}},
	{"seen for less than its duration and taken by its timestamps", illegal, []line{
		lagging(1), told(4, plain(wrote(7, "a", 1, 1))), plain(wrote(8, "b", 11.5, 11.5))}},
	{"told of late, and taken", legal, []line{
		lagging(1), told(4, clock(2.5, 0, plain(wrote(7, "a", 3.5, 3.5)))), plain(wrote(8, "b", 13.4, 13.4))}},
	{"of the same name, seen for less than its duration", illegal, []line{
		lagging(1), plain(wrote(7, "job", 0, 1)), plain(wrote(8, "job", 8, 8))}},
	{"of the same name, in the same term", legal, []line{
		lagging(1), plain(wrote(7, "job", 0, 1)), plain(wrote(8, "job", 0, 3))}},
	{"not taken in a watch that is not complete", legal, []line{wrote(7, "a", 0, 1), wrote(9, "b", 3, 3)}},
	{"renewed without a holder", illegal, []line{watched, wrote(7, "", 0, 1), wrote(8, "", 0, 2)}},
	{"released twice", legal, []line{watched, wrote(7, "", 1, 1), wrote(8, "", 2, 2)}},
	{"renewed long after its end", illegal, []line{
		has("x", hold(1, 0, 5, 137)), lives(1, 1), seen(1, 11, 11, 21)}},
	{"renewed when it was killed, and late", legal, []line{
		has("x", hold(1, 0, 5, 137)), lives(1, 1), seen(1, 4, 9, 14)}},
	{"renewed for another time than was asked", illegal, []line{
		hold(1, 0, 5, own), lives(1, 1), lives(1, 4), lasting(4, seen(1, 3, 3.1, 13))}},
	{"renewed for the time that was asked", legal, []line{
		hold(1, 0, 5, own), lives(1, 1), lives(1, 4), lasting(10, seen(1, 3, 3.1, 13))}},
	{"a name that is shared was not seen then", illegal, []line{
		watched, shared(command(1, "acquire", "crew", 20, 21, 137)), wrote(7, "crew", 1, 1), wrote(8, "", 2, 2),
		command(2, "acquire", "b", 22, 23, 4)}},
	{"a name that is shared was seen then", legal, []line{
		watched, shared(command(1, "acquire", "crew", 20, 21, 137)), wrote(7, "crew", 20.5, 20.5), command(2, "acquire", "b", 22, 23, 4)}},
	{"versions that go backwards", bad, []line{watched, wrote(7, "a", 0, 1), wrote(6, "", 2, 2)}},

	// Tokens
	{"the token of who waited does not grow over a deletion", illegal, []line{
		hold(1, 0, 3, 75), lives(1, 1, "9"), hold(2, 0.5, 5, own), removal(2, 2.5, 0), lives(2, 3, "8"), lives(2, 4, "8")}},
	{"the token of who waited grows over a deletion", legal, []line{
		hold(1, 0, 3, 75), lives(1, 1, "9"), hold(2, 0.5, 5, own), removal(2, 2.5, 0), lives(2, 3, "10"), lives(2, 4, "10")}},
	{"the token of one that was evicted before it began", legal, []line{
		hold(1, 0, 3, 75), removal(0.5, 0.7, 0), hold(2, 0.5, 5, own), lives(2, 0.8, "9"), lives(1, 1, "8"), lives(2, 4, "9")}},
	{"a token that is a version of its lease", legal, []line{
		watched, has("x", by("a", hold(1, 0, 5, own))), lives(1, 1, "7"), lives(1, 4, "7"), plain(wrote(7, "a", 0.5, 0.5)), plain(wrote(9, "", 4.5, 4.5))}},
	{"a token that is a version of a renewal", legal, []line{
		watched, has("x", by("a", hold(1, 0, 5, own))), lives(1, 1, "8"), lives(1, 4, "8"), plain(wrote(7, "a", 0.5, 0.5)),
		plain(wrote(8, "a", 0.5, 0.8)), plain(wrote(9, "", 4.5, 4.5))}},
	{"a token that is the version of another's", illegal, []line{
		watched, has("x", by("a", hold(1, 0, 5, own))), lives(1, 1, "6"), lives(1, 4, "6"), plain(wrote(6, "", 0.1, 0.1)), plain(wrote(7, "a", 0.5, 0.5)),
		plain(wrote(9, "", 4.5, 4.5))}},
	{"a token that is a number of its own", illegal, []line{
		watched, has("x", by("a", hold(1, 0, 5, own))), lives(1, 1, "1"), lives(1, 4, "1"), plain(wrote(7, "a", 0.5, 0.5)), plain(wrote(9, "", 4.5, 4.5))}},
	{"two tokens of one term", illegal, []line{
		watched, shared(hold(1, 0, 2, own)), lives(1, 1, "7"), shared(hold(2, 2.5, 5, own)), lives(2, 3, "8"),
		plain(wrote(7, "job", 0.5, 0.5)), plain(wrote(8, "job", 0.5, 1.5)), plain(wrote(9, "", 4.5, 4.5))}},
	{"two tokens of two terms", legal, []line{
		watched, shared(hold(1, 0, 2, own)), lives(1, 1, "7"), shared(hold(2, 2.5, 5, own)), lives(2, 3, "9"),
		plain(wrote(7, "job", 0.5, 0.5)), plain(wrote(8, "", 1.5, 1.5)), plain(wrote(9, "job", 2.7, 2.7)), plain(wrote(10, "", 4.5, 4.5))}},
	{"the token of a process with a name of its own", legal, []line{
		watched, has("x", command(1, "run", "a", 0, 5, own)), lives(1, 1, "7"), lives(1, 4, "7"), wrote(7, "a#0123abcd", 0.5, 0.5), wrote(9, "", 4.5, 4.5)}},
	{"the token does not grow", illegal, []line{
		hold(1, 0, 5, own), lives(1, 1, "9"), lives(1, 4, "9"), hold(2, 6, 9, own), lives(2, 7, "9"), lives(2, 8, "9")}},
	{"the token grows as a number, not as text", legal, []line{
		hold(1, 0, 5, own), lives(1, 1, "9"), lives(1, 4, "9"), hold(2, 6, 9, own), lives(2, 7, "10"), lives(2, 8, "10")}},
	{"the token does not grow over a deletion", illegal, []line{
		hold(1, 0, 3, 75), lives(1, 1, "9"), removal(2, 2.5, 0), hold(2, 6, 9, own), lives(2, 7, "8"), lives(2, 8, "8")}},
	{"transitions begin anew after a deletion", legal, []line{
		hold(1, 0, 3, 75), transitions(lives(1, 1, "9")), removal(2, 2.5, 0), hold(2, 6, 9, own), transitions(lives(2, 7, "0"))}},
	{"the token changes within a term", illegal, []line{
		hold(1, 0, 5, own), lives(1, 1, "9"), lives(1, 4, "10")}},

	// Histories that are none
	{"a usage error", bad, []line{command(1, "acquire", "a", 0, 1, 2)}},
	{"a command that cannot be", bad, []line{command(1, "steal", "a", 0, 1, 0)}},
	{"a command that ended without having lived", bad, []line{hold(1, 0, 1, own)}},
	{"a beat of nobody's", bad, []line{lives(1, 1)}},
	{"a clock that was set", bad, []line{hold(1, 5, 6, own), lives(1, 1)}},
	{"a return before the call", bad, []line{command(1, "acquire", "a", 1, 0, 0)}},
	{"the same id twice", bad, []line{command(1, "acquire", "a", 0, 1, 0), command(1, "release", "a", 2, 3, 0)}},
}

func TestTheModelTellsLegalHistoriesFromIllegalOnes(t *testing.T) {
	for _, test := range histories {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history")
			var text bytes.Buffer
			run := line{Kind: "run", Seed: "1", Late: late * s, OwnCode: own}
			for _, one := range append([]line{run}, test.lines...) {
				encoded, err := json.Marshal(one)
				if err != nil {
					t.Fatal(err)
				}
				text.Write(append(encoded, '\n'))
			}
			var out bytes.Buffer
			verdict := bad
			h, err := read(&text)
			if err == nil {
				verdict = judge(h, 10*time.Second, path, &out)
			}
			if verdict != test.verdict {
				t.Errorf("%d, not %d: %v\n%s", verdict, test.verdict, err, &out)
			}
			pictures, _ := filepath.Glob(path + ".*.html")
			if len(pictures) != strings.Count(out.String(), "picture:") {
				t.Errorf("%v\n%s", pictures, &out)
			}
		})
	}
}

func TestWhatHappenedIsCounted(t *testing.T) {
	h := &history{run: line{Late: late * s, OwnCode: own}, commands: map[int]*invocation{}, removals: map[string][]record{}}
	for _, c := range []line{
		command(1, "acquire", "a", 0, 1, 0), command(2, "acquire", "b", 2, 3, 4), command(3, "acquire", "b", 14, 15, 0),
		command(4, "release", "b", 16, 17, 0), command(5, "acquire", "c", 18, 19, 0), command(6, "renew", "c", 20, 21, 1),
	} {
		h.commands[c.Id] = &invocation{record: c}
		h.order = append(h.order, c.Id)
	}
	var out bytes.Buffer
	if judge(h, time.Second, "", &out) != legal {
		t.Fatal(out.String())
	}
	for _, expected := range []string{
		`"invocations":6,`, `"acquired":3,`, `"holders":3,`, `"held":1,`, `"released":1,`, `"unclear":1,`,
	} {
		if !strings.Contains(out.String(), expected) {
			t.Errorf("%s is not in %s", expected, &out)
		}
	}
}
