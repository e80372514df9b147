//! The processes of `hold` and `maint run`: what ends with what, whatever is killed, signalled, piped
//! or run as another user.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    harness::{
        User,
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::{BINARY, Plugin, Running, children, wait_for},
    shared,
};

const SOON: Duration = Duration::from_secs(10);

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

fn lease(name: &str) -> Value {
    serde_json::from_str(&shared().kubectl(&["get", "lease", "-n", "default", name, "-o", "json"])).unwrap()
}

fn holder(name: &str) -> String {
    lease(name)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

fn name() -> String {
    format!("process-{}", random())
}

/// A file of this test's own.
fn file() -> PathBuf {
    shared().folder.join(name())
}

/// Whether a process runs: a zombie does not.
fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
}

/// Sent by a process from which none of them descends, to those that have not ended meanwhile. (A shell's own
/// `kill`: not every machine has the program.)
#[track_caller]
fn signal(signal: &str, processes: &[u32]) {
    const KILL: &str =
        "for process; do kill \"$0\" \"$process\" || [ ! -e \"/proc/$process\" ] || exit 1; done";
    let processes = processes.iter().map(u32::to_string);
    let kill = Command::new("sh").args(["-c", KILL, signal]).args(processes).output().unwrap();
    assert!(kill.status.success(), "{kill:?}");
}

/// The processes of a session that pkill would find by `pattern`, in their names or command lines.
fn in_session(session: u32, pattern: &str, command_lines: bool) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let read = |process: &u32, file: &str| {
        let bytes = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let belongs = |process: &u32| {
        // After the name: state, parent, group, session.
        let stat = read(process, "stat");
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').nth(3).map(str::to_owned));
        fields.flatten() == Some(session.to_string())
    };
    let file = if command_lines { "cmdline" } else { "comm" };
    numbers.filter(|process| belongs(process) && read(process, file).contains(pattern)).collect()
}

/// The processes whose numbers the command has printed so far, once there are so many.
#[track_caller]
fn printed(running: &Running, count: usize) -> Vec<u32> {
    let numbers = |text: &str| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>();
    running.until("the command runs", SOON * 3, |text| numbers(text).len() >= count);
    numbers(&running.stdout())
}

#[track_caller]
fn all_gone(processes: &[u32], within: Duration) {
    let begun = Instant::now();
    let mut left = processes.to_vec();
    loop {
        left.retain(|process| runs(*process));
        if left.is_empty() || begun.elapsed() >= within {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    if !left.is_empty() {
        signal("-KILL", &left);
        panic!("{left:?} of {processes:?} run after {within:?}");
    }
}

/// Prints its own number, that of a child that left its session, and that of one whose parent is gone.
const FAMILY: &str = "echo $$; setsid sh -c 'echo $$; exec sleep 600' & \
    sh -c \"setsid sh -c 'echo \\$\\$; exec sleep 600' &\"; wait; sleep 600";

/// A line that can be given to a shell.
fn shell_line(words: &[&str]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_kills_the_plugin_by_name_or_words_leaves_the_watchdog_to_end_everything() {
    for way in ["its number", "its name", "a word of the command"] {
        let (name, word) = (name(), format!("word-{}", random()));
        let script = format!(": {word}; {FAMILY}");
        // In a session of its own: what is killed by name is only looked for there.
        let args = [BINARY, "hold", &name, "-n", "default", "--", "sh", "-c", &script];
        let mut running = plugin().start_by("setsid", &args);
        let family = printed(&running, 3);
        let dog = running.watchdog();
        let found = match way {
            "its number" => vec![running.id()],
            "its name" => in_session(running.id(), "kubectl-lease", false),
            _ => in_session(running.id(), &word, true),
        };
        assert!(found.contains(&running.id()), "{way}: {found:?}");
        signal("-KILL", &found);
        all_gone(&family, Duration::from_secs(4));
        all_gone(&[dog], Duration::from_secs(4));
        assert_eq!(running.wait(), 137, "{way}");
        assert_ne!(holder(&name), "", "{way}: it is left to expire");
    }
}

#[test]
fn any_two_of_plugin_leash_and_watchdog_killed_together_leave_nothing() {
    for spared in ["plugin", "leash", "watchdog"] {
        let name = name();
        let mut running = plugin().start(&["hold", &name, "-n", "default", "--", "sh", "-c", FAMILY]);
        let family = printed(&running, 3);
        let mut all =
            [("plugin", running.id()), ("leash", running.leash()), ("watchdog", running.watchdog())];
        // The plugin last: what is left behind by the other two has to be found by a leash that lives.
        all.reverse();
        let killed: Vec<u32> = all.iter().filter(|(name, _)| *name != spared).map(|(_, id)| *id).collect();
        signal("-STOP", &killed);
        signal("-KILL", &killed);
        all_gone(&family, Duration::from_secs(5));
        all_gone(&all.map(|(_, id)| id), SOON);
        if spared == "plugin" {
            assert_eq!(running.wait(), 75, "{}", running.stderr());
            assert_eq!(holder(&name), "");
        } else {
            assert_ne!(holder(&name), "", "{spared}: it is left to expire");
        }
    }
}

/// Nothing can do anything then: the kernel does.
#[test]
fn plugin_leash_and_watchdog_killed_together_take_the_command_with_them() {
    let name = name();
    let script = "echo $$; while :; do sleep 0.1; done";
    let running = plugin().start(&["hold", &name, "-n", "default", "--", "sh", "-c", script]);
    let command = printed(&running, 1);
    let all = [running.watchdog(), running.leash(), running.id()];
    signal("-STOP", &all);
    signal("-KILL", &all);
    all_gone(&command, Duration::from_secs(5));
    assert_ne!(holder(&name), "", "it is left to expire");
}

/// A watchdog that died before the kernel was asked to tie the command to it.
#[test]
fn a_command_whose_watchdog_is_gone_already_is_not_run() {
    let exec = |watchdog: u32| {
        let trace = file();
        let status = Command::new("sh")
            .args(["-c", "exec \"$0\" __exec \"$1\" 3 '' touch \"$2\" 3>/dev/null", BINARY])
            .arg(watchdog.to_string())
            .arg(&trace)
            .status();
        (status.unwrap().code(), trace.exists())
    };
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    assert_eq!(exec(gone.id()), (Some(126), false));
    assert_eq!(exec(std::process::id()), (Some(0), true), "its parent is there");
}

/// It is there for when the others are gone.
#[test]
fn a_leash_that_is_killed_or_stopped_alone_changes_nothing() {
    for how in ["-KILL", "-STOP"] {
        let (name, go) = (name(), file());
        let script =
            format!("sleep 600 & echo $!; until [ -e {} ]; do sleep 0.05; done; exit 5", go.display());
        let mut running = plugin().start(&["hold", &name, "-n", "default", "--", "sh", "-c", &script]);
        let left = printed(&running, 1);
        signal(how, &[running.leash()]);
        std::thread::sleep(Duration::from_millis(300));
        assert!(runs(running.id()) && runs(left[0]), "{how}: {}", running.stderr());
        fs::write(go, "").unwrap();
        assert_eq!(running.wait(), 5, "{how}: {}", running.stderr());
        all_gone(&left, Duration::ZERO);
        assert_eq!(holder(&name), "", "{how}");
    }
}

/// Between the start of the command and the watchdog's report of it.
#[test]
fn a_watchdog_that_is_killed_as_it_starts_the_command_leaves_nothing() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let (name, family) = (name(), file());
    for _ in 0..8 {
        let script = format!("exec >>{}; {FAMILY}", family.display());
        let args = ["hold", &name, "-n", "default", "-d", "3s", "--", "sh", "-c", &script];
        let running = plugin().start(&args);
        let end = Instant::now() + SOON;
        let dog = loop {
            if let [leash] = children(running.id())[..]
                && let [dog] = children(leash)[..]
            {
                break dog;
            }
            assert!(Instant::now() < end, "{}", running.stderr());
        };
        while children(dog).is_empty() && Instant::now() < end {}
        kill(Pid::from_raw(i32::try_from(dog).unwrap()), Signal::SIGKILL).unwrap();
        running.until_stderr("it is told", SOON, |text| text.contains("the watchdog"));
    }
    // Also what was only about to be started.
    std::thread::sleep(Duration::from_millis(500));
    let family = fs::read_to_string(family).unwrap_or_default();
    all_gone(&family.lines().map(|line| line.parse().unwrap()).collect::<Vec<_>>(), Duration::ZERO);
}

/// Leash and watchdog without a plugin: this test gives the orders.
struct Guard {
    leash: std::process::Child,
    orders: std::process::ChildStdin,
    reports: Box<dyn Iterator<Item = String>>,
}

impl Guard {
    fn start(script: &str) -> Self {
        use std::io::{BufRead as _, BufReader};
        let mut leash = Command::new("setsid")
            .args(["sh", "-c", "exec \"$0\" __leash 3 4 3 $PPID 3<&0 4>&1 </dev/null >/dev/null", BINARY])
            .envs([("KUBECTL_LEASE_COMMAND_0", "sh"), ("KUBECTL_LEASE_COMMAND_1", "-c")])
            .env("KUBECTL_LEASE_COMMAND_2", script)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let orders = leash.stdin.take().unwrap();
        let reports = BufReader::new(leash.stdout.take().unwrap()).lines().map(Result::unwrap);
        Self { leash, orders, reports: Box::new(reports) }
    }

    fn order(&mut self, order: &str) {
        use std::io::Write as _;
        writeln!(self.orders, "{order}").unwrap();
    }

    fn valid(&mut self, terminate: u64, kill: u64) {
        let now = kube_leases::clock::BootInstant::now().to_millis();
        self.order(&format!("valid {} {}", now + terminate, now + kill));
    }

    /// The process that is reported next.
    #[track_caller]
    fn process(&mut self, word: &str) -> u32 {
        let report = self.reports.next().unwrap();
        report.strip_prefix(word).unwrap_or_else(|| panic!("{report}")).trim().parse().unwrap()
    }
}

/// As from a plugin that was stopped meanwhile.
#[test]
fn a_renewal_that_comes_after_sigterm_does_not_let_the_command_go_on() {
    let (ready, told) = (file(), file());
    let script = format!(
        "trap 'touch {}' TERM; touch {}; while :; do sleep 0.02; done",
        told.display(),
        ready.display()
    );
    let mut guard = Guard::start(&script);
    guard.valid(20_000, 21_000);
    guard.process("watching");
    let command = guard.process("started");
    wait_for("it runs", SOON, || ready.exists(), String::new);
    guard.valid(0, 2000);
    wait_for("it is told to end", SOON, || told.exists(), String::new);
    let begun = Instant::now();
    guard.valid(8000, 9000);
    assert_eq!(guard.reports.next().as_deref(), Some("expired"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    all_gone(&[command], Duration::ZERO);
    guard.leash.wait().unwrap();
}

/// The command was not there yet when the service manager told every process to end.
#[test]
fn a_signal_from_before_the_command_was_started_is_passed_on() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let mut guard = Guard::start("exec sleep 600");
    let dog = guard.process("watching");
    kill(Pid::from_raw(i32::try_from(dog).unwrap()), Signal::SIGTERM).unwrap();
    guard.valid(4000, 5000);
    guard.order("signal 15");
    guard.process("started");
    assert_eq!(guard.reports.next().as_deref(), Some("ended 143"));
    guard.leash.wait().unwrap();
}

/// As systemd does, which stops a service by a signal to every process of its control group.
#[test]
fn a_signal_to_every_process_leaves_the_command_its_time_to_end() {
    let name = name();
    for (signal_name, code) in [("-TERM", 7), ("-INT", 8), ("-HUP", 9)] {
        let script = format!(
            "trap 'sleep 1; exit {code}' {}; echo $$; while :; do sleep 0.05; done",
            &signal_name[1..]
        );
        let mut running = plugin().start(&["hold", &name, "-n", "default", "--", "sh", "-c", &script]);
        let command = printed(&running, 1);
        signal(signal_name, &[running.id(), running.leash(), running.watchdog(), command[0]]);
        assert_eq!(running.wait(), code, "{signal_name}: {}", running.stderr());
        assert_eq!(holder(&name), "");
    }
}

/// Sent by this process, from which all of them descend, as services do from their manager.
#[test]
fn a_signal_that_the_service_manager_sends_to_every_process_comes_once() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let name = name();
    // `wait` is interrupted by the signal: a second one finds none that is still pending.
    let script = "trap 'echo term' TERM; echo $$; while :; do sleep 1 & wait $!; done";
    let args = [BINARY, "hold", &name, "-n", "default", "--", "sh", "-c", script];
    let running = plugin().start_by("setsid", &args);
    let command = printed(&running, 1)[0];
    let (id, leash, dog) = (running.id(), running.leash(), running.watchdog());
    // How long it took.
    let tell = |processes: &[u32]| {
        let begun = Instant::now();
        for process in processes {
            kill(Pid::from_raw(i32::try_from(*process).unwrap()), Signal::SIGTERM).unwrap();
            if *process == id {
                // Time for the plugin to pass it on before the watchdog has it.
                std::thread::sleep(Duration::from_millis(15));
            }
        }
        begun.elapsed()
    };
    let terms = || running.stdout().matches("term").count();
    let passed_on = |terms: usize| {
        running.until("it is passed on", SOON, |text| text.matches("term").count() == terms);
    };
    // In whatever order the manager finds them.
    for order in [[id, leash, dog, command], [command, dog, leash, id]] {
        // Where this process was not run for a while, the watchdog's signal came too late to count as the
        // same: that tells nothing.
        let counted = (0..20).any(|_| {
            let before = terms();
            let took = tell(&order);
            std::thread::sleep(Duration::from_millis(600));
            let came = terms() - before;
            assert!(came >= 1, "{}", running.stdout());
            assert!(came == 1 || took > Duration::from_millis(30), "{took:?}: {}", running.stdout());
            took <= Duration::from_millis(30)
        });
        assert!(counted, "this machine is too busy");
        // To the plugin alone it is passed on as ever.
        let before = terms();
        tell(&[id]);
        passed_on(before + 1);
    }
    // What only the watchdog got says nothing about what the plugin gets a while later.
    let before = terms();
    tell(&[dog]);
    std::thread::sleep(Duration::from_millis(700));
    tell(&[id]);
    passed_on(before + 1);
    // Nor does a signal of another's, who may have chosen them by the file that they run.
    signal("-TERM", &[id, leash, dog]);
    passed_on(before + 2);
    // What is left of the command is the watchdog's.
    running.signal("-KILL");
    all_gone(&[command], SOON);
}

#[test]
fn a_hangup_does_not_end_what_nohup_started() {
    let name = name();
    let script = "echo $$; while :; do sleep 0.05; done";
    let args = [BINARY, "hold", &name, "-n", "default", "--", "sh", "-c", script];
    let mut running = plugin().start_by("nohup", &args);
    let command = printed(&running, 1);
    signal("-HUP", &[running.id(), running.watchdog(), command[0]]);
    std::thread::sleep(Duration::from_millis(500));
    assert!(runs(running.id()) && runs(command[0]), "{}", running.stderr());
    running.signal("-TERM");
    assert_eq!(running.wait(), 143);
    assert_eq!(holder(&name), "");
}

/// What is ignored stays ignored, as for the background jobs of a script, and nothing else is, nor
/// blocked, whatever the watchdog does for itself. An ignored SIGCHLD would hide how the command ends.
#[test]
fn the_command_finds_the_signals_as_the_plugin_found_them() {
    let name = name();
    let mask = |text: &str, which: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(which)).unwrap();
        u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
    };
    // (Not by a shell: some unblock everything.)
    for (ignore, ignored) in [(None, 0), (Some("--ignore-signal=HUP,INT,QUIT,CHLD"), 0b111)] {
        let hold = |command: &[&str]| {
            let args = [BINARY, "hold", &name, "-n", "default", "--"];
            plugin().start_by("env", &[ignore.as_slice(), &args, command].concat())
        };
        let mut running = hold(&["grep", "Sig", "/proc/self/status"]);
        assert_eq!(running.wait(), 0, "{}", running.stderr());
        let shown = running.stdout();
        assert_eq!(mask(&shown, "SigBlk"), 0, "{shown}");
        assert_eq!(mask(&shown, "SigIgn") & 0x1_ffff, ignored, "{ignore:?}: {shown}");
        assert_eq!(hold(&["sh", "-c", "exit 5"]).wait(), 5, "{ignore:?}");
    }
}

#[test]
fn an_interrupt_does_not_end_the_background_job_of_a_script() {
    let name = name();
    let first =
        plugin().start(&["hold", &name, "-n", "default", "--", "sh", "-c", "echo $$; exec sleep 600"]);
    printed(&first, 1);
    // One that waits, which is the plugin's own part, and one whose command runs.
    let hold = shell_line(&[BINARY, "hold", &name, "-n", "default", "--wait", "--", "sh", "-c", FAMILY]);
    let running = plugin().start_by("sh", &["-c", &format!("{hold} & echo job $! >&2; wait")]);
    running.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    let stderr = running.stderr();
    let job: u32 = stderr.lines().find_map(|line| line.strip_prefix("job ")).unwrap().parse().unwrap();
    signal("-INT", &[job]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(runs(job), "{}", running.stderr());
    first.signal("-TERM");
    let family = printed(&running, 3);
    signal("-INT", &[job]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(runs(job) && family.iter().all(|process| runs(*process)), "{}", running.stderr());
    signal("-TERM", &[job]);
    all_gone(&family, SOON);
}

/// The answer to the write that takes the lease comes when the time to end the command has come.
#[test]
fn a_lease_that_is_answered_too_late_runs_nothing() {
    let (name, trace) = (name(), file());
    let proxy = FaultProxy::start(shared(), |method, path| {
        if method == "POST" && path.contains("/leases") { Fault::SlowAnswer(2300) } else { Fault::None }
    });
    let touch = ["touch", trace.to_str().unwrap()];
    Plugin::new(&proxy.kubeconfig)
        .run(&[&["hold", &name, "-n", "default", "-d", "3s", "--"][..], &touch].concat())
        .expect(75)
        .says("error: the lease was lost and the command was not started");
    assert!(!trace.exists());
}

#[test]
fn what_the_command_leaves_behind_is_gone_before_the_lease_is_released() {
    let name = name();
    let left: Arc<std::sync::Mutex<Vec<u32>>> = Arc::default();
    let (seen, over) = (Arc::clone(&left), Arc::new(AtomicBool::new(false)));
    let too_early = Arc::clone(&over);
    // The duration is long: the only PATCH is the release.
    let proxy = FaultProxy::start(shared(), move |method, _| {
        if method == "PATCH" && seen.lock().unwrap().iter().any(|process| runs(*process)) {
            too_early.store(true, Ordering::SeqCst);
        }
        Fault::None
    });
    let go = file();
    // Deaf to everything that can be ignored.
    let stay = "trap '' TERM HUP INT; echo $$; exec sleep 600";
    let script = format!(
        "sh -c \"$STAY\" & setsid sh -c \"$STAY\" & sh -c 'setsid sh -c \"$STAY\" & '; \
         until [ -e {} ]; do sleep 0.02; done; exit 0",
        go.display()
    );
    let plugin = Plugin::new(&proxy.kubeconfig).env("STAY", stay);
    let mut running = plugin.start(&["hold", &name, "-n", "default", "-d", "1h", "--", "sh", "-c", &script]);
    *left.lock().unwrap() = printed(&running, 3);
    fs::write(go, "").unwrap();
    let code = running.wait();
    all_gone(&left.lock().unwrap(), Duration::ZERO);
    assert_eq!(code, 0, "{}", running.stderr());
    assert!(!over.load(Ordering::SeqCst), "released while something ran");
    assert_eq!(holder(&name), "");
}

#[test]
fn a_stopped_command_can_still_end_by_itself_when_its_lease_is_lost() {
    let (name, trace) = (name(), file());
    let script =
        format!("trap 'echo bye >{}; exit 3' TERM; echo $$; kill -STOP $$; sleep 600", trace.display());
    let mut running = plugin().start(&["hold", &name, "-n", "default", "--", "sh", "-c", &script]);
    let command = printed(&running, 1);
    let stopped = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", command[0])).unwrap_or_default();
        stat.contains(") T ")
    };
    wait_for("it is stopped", SOON, stopped, || running.stderr());
    shared().kubectl(&["delete", "lease", "-n", "default", &name]);
    assert_eq!(running.wait(), 75);
    assert!(trace.exists());
}

/// The lease could not be renewed, and the command takes its time: whatever the plugin is told
/// meanwhile, it does not release under the command's feet.
#[test]
fn a_plugin_that_is_told_to_end_does_not_release_over_a_command_that_is_ending() {
    for how in ["-TERM", "-INT", "-KILL"] {
        let (name, told) = (name(), file());
        let broken = Arc::new(AtomicBool::new(false));
        let command = Arc::new(std::sync::Mutex::new(Vec::<u32>::new()));
        let too_early = Arc::new(AtomicBool::new(false));
        let (switch, watched, flag, trace) =
            (Arc::clone(&broken), Arc::clone(&command), Arc::clone(&too_early), told.clone());
        let proxy = FaultProxy::start(shared(), move |method, _| {
            if method != "PATCH" || !switch.load(Ordering::SeqCst) {
                return Fault::None;
            }
            if !trace.exists() {
                return Fault::Refuse(503);
            }
            if watched.lock().unwrap().iter().any(|process| runs(*process)) {
                flag.store(true, Ordering::SeqCst);
            }
            Fault::None
        });
        let script = format!(
            "trap 'touch {}' TERM; trap '' INT; echo $$; while :; do sleep 0.05; done",
            told.display()
        );
        let args = ["hold", &name, "-n", "default", "-d", "15s", "--", "sh", "-c", &script];
        let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
        *command.lock().unwrap() = printed(&running, 1);
        broken.store(true, Ordering::SeqCst);
        wait_for("it is told to end", SOON * 2, || told.exists(), || running.stderr());
        running.signal(how);
        let expected = if how == "-KILL" { 137 } else { 75 };
        assert_eq!(running.wait(), expected, "{how}: {}", running.stderr());
        all_gone(&command.lock().unwrap(), Duration::from_secs(4));
        assert!(!too_early.load(Ordering::SeqCst), "{how}: released while the command ran");
    }
}

/// A folder from which an unprivileged user can start the plugin and processes of root's, as with sudo.
struct Unprivileged {
    folder: PathBuf,
}

const USER: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A command of an unprivileged user's: this one, if it is.
fn as_user(command: &[&str]) -> Vec<String> {
    let drops: &[&str] = if is_root() { &USER } else { &["env"] };
    drops.iter().chain(command).map(|word| (*word).to_owned()).collect()
}

/// A command of root's: ours, or by sudo if it asks for no password.
fn by_root(command: &[&str]) -> Command {
    let sudo: &[&str] = if is_root() { &[] } else { &["sudo", "-n"] };
    let words = [sudo, command].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

impl Unprivileged {
    /// `None` where that takes root, and this user is not and cannot be by sudo without a password. In CI
    /// that is a failure: a test that does not run is not noticed.
    fn new(kubeconfig: &Path) -> Option<Self> {
        match Self::start(kubeconfig) {
            Ok(this) => Some(this),
            Err(why) if std::env::var_os("CI").is_some() => panic!("{why}"),
            Err(why) => {
                eprintln!("skipped: {why}");
                None
            }
        }
    }

    fn start(kubeconfig: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("kubectl-lease-user-{}", random()));
        fs::create_dir(&folder).unwrap();
        let this = Self { folder };
        let setpriv = Command::new("sh").args(["-c", "command -v setpriv"]).output().unwrap().stdout;
        let setpriv = String::from_utf8(setpriv).unwrap();
        if setpriv.is_empty() {
            return Err("setpriv is not installed".into());
        }
        // Not by this process: what it starts meanwhile would have the file open for writing, and a
        // file that is written cannot be executed.
        let copy = |from: &str, to: &str| {
            assert!(Command::new("cp").arg(from).arg(this.file(to)).status().unwrap().success());
        };
        copy(BINARY, "kubectl-lease");
        fs::copy(kubeconfig, this.file("kubeconfig")).unwrap();
        for (name, mode) in [("kubectl-lease", 0o755), ("kubeconfig", 0o644), ("", 0o755)] {
            fs::set_permissions(this.folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let install = ["install", "-o", "root", "-m", "4755", setpriv.trim(), &this.file("as-root")];
        let installed = by_root(&install).output();
        if !installed.is_ok_and(|output| output.status.success()) {
            return Err("it takes root, or sudo without a password, to run commands of root's".into());
        }
        let probe = format!("{} id -ru", this.as_root());
        let seen = as_user(&["sh", "-c", &probe]);
        let seen = Command::new(&seen[0]).args(&seen[1..]).output().unwrap();
        if seen.stdout != b"0\n" {
            return Err("the temporary folder is mounted with nosuid: no commands of root's there".into());
        }
        Ok(this)
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// What begins a command of root's, which the user cannot end.
    fn as_root(&self) -> String {
        format!("{} --reuid=0 --regid=0 --clear-groups", self.file("as-root"))
    }

    /// Holds a lease as the user; the script prints the number of the process that cannot be ended.
    fn hold(&self, name: &str, script: &str) -> (Running, Survivor) {
        let binary = self.file("kubectl-lease");
        let args = [&binary, "hold", name, "-n", "default", "-d", "15s", "--", "sh", "-c", script];
        let args = as_user(&args);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let running = Plugin::new(self.file("kubeconfig")).start_by(args[0], &args[1..]);
        let survivor = Survivor(printed(&running, 1)[0]);
        let is_roots = || {
            let status = fs::read_to_string(format!("/proc/{}/status", survivor.0)).unwrap_or_default();
            status.contains("Name:\tsleep") && status.contains("Uid:\t0\t0")
        };
        wait_for("it is root's", SOON, is_roots, || running.stderr());
        (running, survivor)
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Ended at last, whatever becomes of the test.
struct Survivor(u32);

impl Survivor {
    fn named(&self) -> String {
        format!("process {} (sleep)", self.0)
    }
}

impl Drop for Survivor {
    fn drop(&mut self) {
        if runs(self.0) {
            // (By a shell: not every machine has kill as a program.)
            let kill = ["sh", "-c", "kill -KILL \"$0\"", &self.0.to_string()];
            assert!(by_root(&kill).status().unwrap().success());
        }
    }
}

fn renewed(name: &str) -> String {
    lease(name)["spec"]["renewTime"].as_str().unwrap().to_owned()
}

#[test]
fn what_cannot_be_ended_keeps_the_lease_until_it_is_gone() {
    let proxy = FaultProxy::start(shared(), |_, _| Fault::None);
    let Some(user) = Unprivileged::new(&proxy.kubeconfig) else { return };
    let name = name();
    let script = format!(
        "{} sleep 600 >/dev/null 2>&1 & echo $!; until grep -q 'Uid:.0.0' /proc/$!/status; do sleep 0.02; done; exit 5",
        user.as_root()
    );
    let (mut running, survivor) = user.hold(&name, &script);
    let words = format!("the command has ended, but {} could not be ended", survivor.named());
    running.until_stderr("it is spoken of", SOON, |text| text.contains(&words));
    let (begun, first) = (Instant::now(), renewed(&name));
    wait_for("it is renewed", SOON, || renewed(&name) != first, || running.stderr());
    let second = renewed(&name);
    wait_for("it is renewed again", SOON, || renewed(&name) != second, || running.stderr());
    wait_for("a whole duration", SOON * 2, || begun.elapsed() > Duration::from_secs(15), String::new);
    assert!(runs(survivor.0) && runs(running.id()));
    assert_ne!(holder(&name), "");
    assert_eq!(running.stderr().matches("could not be ended").count(), 1, "{}", running.stderr());
    drop(survivor);
    assert_eq!(running.wait(), 5, "{}", running.stderr());
    assert_eq!(holder(&name), "");
}

#[test]
fn an_interrupt_leaves_behind_what_cannot_be_ended_and_does_not_release() {
    let proxy = FaultProxy::start(shared(), |_, _| Fault::None);
    let Some(user) = Unprivileged::new(&proxy.kubeconfig) else { return };
    let name = name();
    // The first ends the command, the second is about what it leaves behind.
    let script = format!(
        "trap 'exit 5' INT; {} sleep 600 >/dev/null 2>&1 & echo $!; while :; do sleep 0.05; done",
        user.as_root()
    );
    let (mut running, survivor) = user.hold(&name, &script);
    running.signal("-INT");
    running.until_stderr("it is spoken of", SOON, |text| text.contains(&survivor.named()));
    running.signal("-INT");
    assert_eq!(running.wait(), 77, "{}", running.stderr());
    let words = format!("error: interrupted while {} could not be ended", survivor.named());
    assert!(running.stderr().contains(&words), "{}", running.stderr());
    assert_ne!(holder(&name), "", "it is left to expire");

    // The command itself cannot be told.
    let script = format!("echo $$; exec {} sleep 600 >/dev/null 2>&1", user.as_root());
    let (mut running, survivor) = user.hold(&format!("{name}-2"), &script);
    running.signal("-TERM");
    let words = format!("SIGTERM could not be sent to {}", survivor.named());
    running.until_stderr("it is spoken of", SOON, |text| text.contains(&words));
    running.signal("-TERM");
    assert_eq!(running.wait(), 77, "{}", running.stderr());
    assert!(runs(survivor.0));
}

#[test]
fn a_lost_lease_with_a_process_that_cannot_be_ended_says_so_and_is_not_released() {
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let proxy = FaultProxy::start(shared(), move |method, _| {
        if method == "PATCH" && switch.load(Ordering::SeqCst) { Fault::Refuse(503) } else { Fault::None }
    });
    let Some(user) = Unprivileged::new(&proxy.kubeconfig) else { return };
    let script = format!("echo $$; exec {} sleep 600 >/dev/null 2>&1", user.as_root());
    // By the watchdog; and by the plugin itself, when the watchdog is killed.
    for kill_watchdog in [false, true] {
        let name = name();
        let (mut running, survivor) = user.hold(&name, &script);
        if kill_watchdog {
            signal("-KILL", &[running.watchdog()]);
        } else {
            broken.store(true, Ordering::SeqCst);
            // Past the last attempt to renew, a release would succeed again.
            std::thread::sleep(Duration::from_millis(15_300));
            broken.store(false, Ordering::SeqCst);
        }
        let begun = Instant::now();
        assert_eq!(running.wait(), 77, "{}", running.stderr());
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let words = format!("the lease was lost and {} could not be ended", survivor.named());
        assert!(running.stderr().contains(&words), "{}", running.stderr());
        assert!(runs(survivor.0));
        assert_ne!(holder(&name), "", "it is left to expire");
    }
}

/// An interactive shell, and a pager at the other end of a pipe: it reads keys from the terminal
/// while the command runs.
#[test]
fn a_pipeline_keeps_its_terminal_and_the_lease() {
    let name = name();
    let mut shell = plugin().env("PS1", "ready> ").start_on_terminal_by("bash", &["--norc", "-i"], 40, 250);
    let mut keyboard = shell.keyboard();
    shell.until("the shell is there", SOON, |screen| screen.contains("ready>"));
    let script = "while :; do echo x; sleep 0.1; done";
    let hold = shell_line(&[BINARY, "hold", &name, "-n", "default", "-d", "15s", "--", "sh", "-c", script]);
    let pager =
        "while read -rsn1 key </dev/tty; do echo \"key:$key:\"; [ \"$key\" = q ] && break; done".to_owned();
    keyboard.types(&format!("{hold} | {}\r", shell_line(&["bash", "-c", &pager])));
    let there = || {
        let found = shared().kubectl(&["get", "lease", "-n", "default", &name, "--ignore-not-found"]);
        !found.is_empty()
    };
    wait_for("it is held", SOON, there, || shell.screen());
    let (begun, ours) = (Instant::now(), holder(&name));
    let mut keys = 0;
    while begun.elapsed() < Duration::from_secs(17) {
        keys += 1;
        keyboard.types("k");
        shell.until("the pager hears it", SOON, |screen| screen.matches("key:k:").count() >= keys);
        std::thread::sleep(Duration::from_millis(800));
    }
    assert_eq!(holder(&name), ours);
    assert_ne!(ours, "");
    keyboard.types("q");
    shell.until("the pager ends", SOON, |screen| screen.contains("key:q:"));
    // The command ends by the pipe that nobody reads.
    wait_for("it is released", SOON, || holder(&name).is_empty(), || shell.screen());
    keyboard.types("echo back-$((40 + 2))\r");
    shell.until("the shell has its terminal", SOON, |screen| screen.contains("back-42"));
    keyboard.types("exit\r");
    shell.wait();
}

/// Alone on the terminal, or with a script that waits for it, the command has the terminal, and the
/// shell has it back afterwards.
#[test]
fn a_command_alone_has_the_terminal_and_gives_it_back() {
    let name = name();
    let mut shell = plugin().env("PS1", "ready> ").start_on_terminal_by("bash", &["--norc", "-i"], 40, 250);
    let mut keyboard = shell.keyboard();
    let script = "read -rsn1 key </dev/tty; echo \"key:$key:\"; exit 4";
    let hold = shell_line(&[BINARY, "hold", &name, "-n", "default", "--", "bash", "-c", script]);
    for (line, key) in [(hold.clone(), "a"), (shell_line(&["sh", "-c", &format!("{hold}; exit $?")]), "b")] {
        shell.until("the shell is there", SOON, |screen| screen.trim_end().ends_with("ready>"));
        keyboard.types(&format!("{line}; echo code-$?\r"));
        let is_held = || {
            let found = shared().kubectl(&["get", "lease", "-n", "default", &name, "--ignore-not-found"]);
            !found.is_empty() && !holder(&name).is_empty()
        };
        wait_for("it is held", SOON, is_held, || shell.screen());
        keyboard.types(key);
        shell.until("the command hears it", SOON, |screen| screen.contains(&format!("key:{key}:")));
        shell.until("its code comes back", SOON, |screen| screen.contains("code-4"));
        keyboard.types("clear; echo back-$((40 + 2))\r");
        shell.until("the shell has its terminal", SOON, |screen| {
            screen.contains("back-42") && !screen.contains("code-4")
        });
    }
    keyboard.types("exit\r");
    shell.wait();
}

/// In a pipeline, where the terminal is not the command's: the kernel stops it when it reads from it.
#[test]
fn a_command_that_waits_for_the_terminal_of_a_pipeline_is_spoken_of_and_can_be_interrupted() {
    let name = name();
    let mut shell = plugin().env("PS1", "ready> ").start_on_terminal_by("bash", &["--norc", "-i"], 40, 250);
    let mut keyboard = shell.keyboard();
    shell.until("the shell is there", SOON, |screen| screen.contains("ready>"));
    let script = "read x </dev/tty; echo got $x";
    let hold = shell_line(&[BINARY, "hold", &name, "-n", "default", "--", "sh", "-c", script]);
    keyboard.types(&format!("{hold} | cat; echo code-${{PIPESTATUS[0]}}\r"));
    shell.until("it is spoken of", SOON, |screen| {
        screen.contains("warning: the command was stopped: it needs the terminal")
    });
    keyboard.types("\x03");
    shell.until("it has ended", SOON, |screen| screen.matches("ready>").count() == 2);
    wait_for("it is released", SOON, || holder(&name).is_empty(), || shell.screen());
    assert_eq!(shell.screen().matches("it needs the terminal").count(), 1, "{}", shell.screen());
    keyboard.types("exit\r");
    shell.wait();
}
