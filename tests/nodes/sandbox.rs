//! The nodes of `make sandbox NODES=2`: every line that it prints works, in whatever state a node is.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use crate::{
    machines::{Machines, usage},
    stage::{SOON, await_ready, eventually, plane, shell},
};

crate::tests![what_the_sandbox_prints_works_in_any_order];

/// Partitioned, crashed, healed and started; hung and let go on; hung, crashed and started.
fn what_the_sandbox_prints_works_in_any_order() {
    let name = "node-sandbox".to_owned();
    let mut machines = Machines::start(plane(), std::slice::from_ref(&name));
    let printed = usage(&plane().folder, std::slice::from_ref(&name));
    let types = |label: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
        let line = line.unwrap_or_else(|| panic!("no '{label}' in {printed}")).trim();
        let out = shell(line, Duration::from_secs(10)).output().unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{line}: {out:?}");
    };
    // The letter that the kernel has for the state of a server; none if it does not run.
    let state = |server: &str| {
        let process = fs::read_to_string(plane().folder.join(&name).join(server).join("pid")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.trim())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    let becomes = |server: &str, is: fn(Option<char>) -> bool| {
        let what = format!("{server} is {:?}", state(server));
        eventually("what was typed is done", SOON, || is(state(server)), || what.clone());
    };
    let is_off = |state: Option<char>| state.is_none();
    let is_stopped = |state: Option<char>| state == Some('T');
    let is_running = |state| matches!(state, Some('S' | 'R'));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                machines.heed_switches();
                thread::sleep(Duration::from_millis(100));
            }
        });
        // Ends the other thread, whatever becomes of this one.
        let _end = End(&over);
        types(&format!("Partition {name}"));
        becomes("relay", is_stopped);
        types("Crash it");
        becomes("machine", is_off);
        types("Heal it");
        types("Start it again");
        becomes("kubelet", is_running);
        becomes("relay", is_running);
        types("Hang its runtime");
        becomes("containerd", is_stopped);
        types("Let that go on");
        becomes("containerd", is_running);
        types("Hang its runtime");
        becomes("containerd", is_stopped);
        types("Crash it");
        becomes("machine", is_off);
        types("Start it again");
        becomes("kubelet", is_running);
        becomes("containerd", is_running);
        await_ready(&name);
        // What it takes of the machine is for others.
        types("Crash it");
        becomes("machine", is_off);
    });
    plane().kubectl(&["delete", "node", &name]);
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
