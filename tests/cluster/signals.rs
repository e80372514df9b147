//! Signals, stops and the terminal around a command that runs under a lease: what is sent to one of its
//! processes neither loses the lease nor lets the command outlive it.

use std::{
    fs,
    io::BufReader,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    harness::{
        User,
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::{BINARY, Keyboard, Plugin, Running, Terminal, children, wait_for},
    shared,
};

const SOON: Duration = Duration::from_secs(10);

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

fn name() -> String {
    format!("signals-{}", random())
}

/// A file of this test's own.
fn file() -> PathBuf {
    shared().folder.join(name())
}

fn spec(name: &str) -> Value {
    let text = shared().kubectl(&["get", "lease", "-n", "default", name, "--ignore-not-found", "-o", "json"]);
    serde_json::from_str::<Value>(&text).map_or(Value::Null, |lease| lease["spec"].clone())
}

/// Empty where there is no lease, too.
fn holder(name: &str) -> String {
    spec(name)["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// The state of a process, such as T for a stopped one; none where it has ended.
fn state(process: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    Some(state).filter(|state| !"ZX".contains(*state))
}

fn runs(process: u32) -> bool {
    state(process).is_some()
}

#[track_caller]
fn signal(signal: &str, processes: &[u32]) {
    let processes = processes.iter().map(u32::to_string);
    assert!(Command::new("kill").arg(signal).args(processes).status().unwrap().success());
}

/// The processes whose numbers the command has printed, once there are so many.
#[track_caller]
fn printed(running: &Running, count: usize) -> Vec<u32> {
    let numbers = |text: &str| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>();
    running.until("the command runs", SOON * 3, |text| numbers(text).len() >= count);
    numbers(&running.stdout())
}

#[track_caller]
fn all_gone(processes: &[u32], within: Duration) {
    let begun = Instant::now();
    while processes.iter().any(|process| runs(*process)) {
        if begun.elapsed() > within {
            let left: Vec<u32> = processes.iter().copied().filter(|process| runs(*process)).collect();
            signal("-KILL", &left);
            panic!("{left:?} of {processes:?} run after {within:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A line that can be given to a shell.
fn shell_line(words: &[&str]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

/// Holds a lease of 15 seconds.
fn hold<'a>(name: &'a str, command: &[&'a str]) -> Vec<&'a str> {
    [&["hold", name, "-n", "default", "-d", "15s", "--"], command].concat()
}

/// Longer than that.
const DURATION: Duration = Duration::from_millis(16_500);

/// Prints its own number, that of a child that left its session, and that of one whose parent is gone.
const FAMILY: &str = "echo $$; setsid sh -c 'echo $$; exec sleep 600' & \
    sh -c \"setsid sh -c 'echo \\$\\$; exec sleep 600' &\"; wait; sleep 600";

/// Nix has no names for real-time signals, and reports a child that dies of one as an error.
#[test]
fn what_dies_of_a_real_time_signal_is_not_all_that_is_left() {
    let name = name();
    let running = plugin().start(&hold(&name, &["sh", "-c", FAMILY]));
    let family = printed(&running, 3);
    // The one that the watchdog has adopted.
    signal("-34", &family[2..]);
    all_gone(&family[2..], SOON);
    std::thread::sleep(Duration::from_millis(500));
    assert!(runs(running.id()) && runs(family[0]) && runs(family[1]), "{}", running.stderr());
    assert_ne!(holder(&name), "");
    // When the plugin is what ends everything.
    let dog = running.watchdog();
    signal("-STOP", &[running.leash()]);
    signal("-KILL", &[dog]);
    signal("-34", &family[1..2]);
    all_gone(&family, SOON);
}

#[test]
fn the_exit_code_tells_the_real_time_signal_of_which_the_command_died() {
    let name = name();
    for number in [34, 50, 64] {
        let script = format!("setsid sh -c 'echo $$; exec sleep 600' & sleep 0.2; kill -{number} $$");
        let mut running = plugin().start(&hold(&name, &["sh", "-c", &script]));
        let left = printed(&running, 1);
        let code = running.wait();
        all_gone(&left, Duration::ZERO);
        assert_eq!(code, 128 + number, "{}", running.stderr());
        assert_eq!(holder(&name), "");
    }
}

#[test]
fn a_watchdog_that_is_stopped_ends_everything_when_the_plugin_is_killed() {
    let name = name();
    let mut running = plugin().start(&hold(&name, &["sh", "-c", FAMILY]));
    let family = printed(&running, 3);
    let others = [running.watchdog(), running.leash()];
    signal("-STOP", &others[..1]);
    running.signal("-KILL");
    // Sooner than for want of a renewal, after 10 s.
    all_gone(&family, Duration::from_secs(6));
    all_gone(&others, Duration::from_secs(6));
    assert_eq!(running.wait(), 137);
    assert_ne!(holder(&name), "", "it is left to expire");
}

/// A debugger keeps it stopped: it is done without.
#[test]
fn a_watchdog_that_stays_stopped_is_killed_when_the_plugin_was() {
    const DEBUGGER: &str = "import ctypes, os, sys\n\
        ptrace, process = ctypes.CDLL(None).ptrace, int(sys.argv[1])\n\
        ptrace.argtypes = [ctypes.c_long] * 4\n\
        SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000\n\
        assert ptrace(SEIZE, process, 0, 0) == 0 and ptrace(INTERRUPT, process, 0, 0) == 0\n\
        print('stopped', flush=True)\n\
        while os.WIFSTOPPED(os.waitpid(process, WALL)[1]): pass\n";
    let name = name();
    let running = plugin().start(&hold(&name, &["sh", "-c", FAMILY]));
    let family = printed(&running, 3);
    let others = [running.watchdog(), running.leash()];
    let mut debugger = Command::new("python3")
        .args(["-c", DEBUGGER, &others[0].to_string()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut BufReader::new(debugger.stdout.take().unwrap()), &mut line).unwrap();
    if line.is_empty() {
        eprintln!("skipped: it takes the right to trace processes");
        debugger.wait().unwrap();
        return;
    }
    running.signal("-KILL");
    let begun = Instant::now();
    while others.iter().chain(&family).any(|process| runs(*process)) && begun.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
    let in_time = begun.elapsed() < SOON;
    debugger.kill().unwrap();
    debugger.wait().unwrap();
    all_gone(&[&family[..], &others].concat(), SOON);
    assert!(in_time);
}

/// Of whose processes the plugin is one: it knows them by name or number, as no service manager does.
#[test]
fn a_scripts_signal_to_plugin_and_watchdog_is_passed_on_to_the_command() {
    let (name, list) = (name(), file());
    let command = "trap 'echo term; exit 7' TERM; echo $$; while :; do sleep 0.02; done";
    let hold = shell_line(&[&[BINARY][..], &hold(&name, &["sh", "-c", command])].concat());
    let script = format!(
        "{hold} & until [ -s {list} ]; do sleep 0.02; done; kill -TERM $(cat {list}); wait $!; echo code-$?",
        list = list.display()
    );
    let mut running = plugin().start_by("sh", &["-c", &script]);
    let command = printed(&running, 1);
    let descend = |process: &u32| children(*process).first().copied();
    let plugin = children(running.id())
        .into_iter()
        .find(|child| fs::read_to_string(format!("/proc/{child}/comm")).unwrap().starts_with("kubectl"));
    let three: Vec<u32> = std::iter::successors(plugin, descend).take(3).collect();
    let text: Vec<String> = three.iter().map(u32::to_string).collect();
    fs::write(list.with_extension("new"), text.join(" ")).unwrap();
    fs::rename(list.with_extension("new"), &list).unwrap();
    running.until("it is passed on", SOON, |text| text.contains("term"));
    running.wait();
    assert!(running.stdout().contains("code-7"), "{}", running.stdout());
    all_gone(&command, Duration::ZERO);
    assert_eq!(holder(&name), "");
}

#[test]
fn many_signals_to_the_plugin_do_not_keep_its_renewals_from_the_watchdog() {
    let name = name();
    let script = "trap '' USR2; trap 'n=$((n + 1))' USR1; trap 'exit $((n > 9 ? 7 : 8))' TERM; echo $$; \
        while :; do sleep 0.02; done";
    let mut running = plugin().start(&hold(&name, &["sh", "-c", script]));
    let command = printed(&running, 1);
    let begun = Instant::now();
    while begun.elapsed() < DURATION {
        running.signal("-USR1");
        running.signal("-USR2");
        std::thread::sleep(Duration::from_millis(10));
        assert!(runs(command[0]), "after {:?}: {}", begun.elapsed(), running.stderr());
    }
    assert_ne!(holder(&name), "");
    running.signal("-TERM");
    assert_eq!(running.wait(), 7, "{}", running.stderr());
    assert_eq!(holder(&name), "");
}

#[test]
fn a_watchdog_that_is_continued_ends_nothing_whose_lease_was_renewed_meanwhile() {
    let name = name();
    let script = "trap 'exit 7' TERM; echo $$; while :; do sleep 0.02; done";
    let mut running = plugin().start(&hold(&name, &["sh", "-c", script]));
    let command = printed(&running, 1);
    let dog = [running.watchdog()];
    signal("-STOP", &dog);
    std::thread::sleep(DURATION);
    signal("-CONT", &dog);
    std::thread::sleep(Duration::from_millis(500));
    assert!(runs(command[0]), "{}", running.stderr());
    running.signal("-TERM");
    assert_eq!(running.wait(), 7, "{}", running.stderr());
}

/// A shell on a terminal, with jobs.
fn shell(plugin: &Plugin) -> (Terminal, Keyboard) {
    let shell = plugin.start_on_terminal_by("bash", &["--norc", "-i"], 40, 250);
    let keyboard = shell.keyboard();
    shell.until("the shell is there", SOON * 3, |screen| screen.contains("ready>"));
    (shell, keyboard)
}

/// Ends the shell, which has its terminal.
#[track_caller]
fn leave(shell: &mut Terminal, keyboard: &mut Keyboard) {
    keyboard.types("echo back-$((40 + 2))\r");
    shell.until("the shell has its terminal", SOON, |screen| screen.contains("back-42"));
    keyboard.types("exit\r");
    shell.wait();
}

fn on_terminal() -> Plugin {
    plugin().env("PS1", "ready> ")
}

/// The number that the command has printed on the screen, after `pid-`.
#[track_caller]
fn shown(shell: &Terminal) -> u32 {
    let find = |screen: &str| {
        screen.lines().find_map(|line| line.rsplit_once("pid-")?.1.trim_end().parse::<u32>().ok())
    };
    shell.until("the command runs", SOON * 3, |screen| find(screen).is_some());
    find(&shell.screen()).unwrap()
}

/// As [`shown`], when the command has the terminal: a key that is typed before that is the script's.
#[track_caller]
fn shown_in_front(shell: &Terminal) -> u32 {
    let command = shown(shell);
    // Behind the name in parentheses: state, parent, process group, session, terminal, its foreground group.
    let in_front = || {
        let stat = fs::read_to_string(format!("/proc/{command}/stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        fields.len() > 5 && fields[2] == fields[5]
    };
    wait_for("it has the terminal", SOON * 3, in_front, || shell.screen());
    command
}

/// It has no terminal to ask on: it belongs to the command.
#[test]
fn a_credential_plugin_that_uses_the_terminal_does_not_stop_the_renewals() {
    let (name, script, count) = (name(), file(), file());
    let proxy = FaultProxy::start(shared(), |_, _| Fault::None);
    // Its token has to be replaced at each renewal.
    let text = format!(
        "#!/bin/sh\nstty -echo </dev/tty; stty echo </dev/tty\necho $KUBERNETES_EXEC_INFO >>{}\n\
         echo '{{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": \
         {{\"token\": \"t\", \"expirationTimestamp\": \"'$(date -u -d '+1 seconds' +%FT%TZ)'\"}}}}'\n",
        count.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&proxy.kubeconfig).unwrap()).unwrap();
    config["contexts"][0]["context"]["user"] = "me".into();
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": script, "interactiveMode": "IfAvailable",
    });
    config["users"] = json!([{ "name": "me", "user": { "exec": exec } }]);
    fs::write(&proxy.kubeconfig, config.to_string()).unwrap();

    let plugin = Plugin::new(&proxy.kubeconfig).env("PS1", "ready> ");
    let (mut shell, mut keyboard) = shell(&plugin);
    let command = "echo pid-$$; sleep 20; echo over";
    // Renewed after 6, 12 and 18 seconds.
    let line = shell_line(&[BINARY, "hold", &name, "-n", "default", "-d", "18s", "--", "sh", "-c", command]);
    keyboard.types(&format!("clear; {line}; echo code-$?\r"));
    shown(&shell);
    let before = fs::read_to_string(&count).unwrap().lines().count();
    shell.until("it ends by itself", SOON * 4, |screen| screen.contains("code-"));
    assert!(shell.screen().contains("code-0"), "{}", shell.screen());
    let told = fs::read_to_string(&count).unwrap();
    assert!(told.lines().count() > before + 2, "{told}");
    assert!(told.contains("\"interactive\":true"), "{told}");
    assert!(told.lines().nth(before).unwrap().contains("\"interactive\":false"), "{told}");
    leave(&mut shell, &mut keyboard);
}

/// The server has done the write that takes the lease, and has not answered yet.
#[test]
fn a_signal_before_the_command_is_started_strands_no_lease() {
    let proxy = FaultProxy::start(shared(), |method, path| {
        if method == "POST" && path.contains("/leases") { Fault::SlowAnswer(5000) } else { Fault::None }
    });
    let taking = |command: &[&str]| {
        let name = name();
        let args = [&["hold", &name, "-n", "default", "--"], command].concat();
        let running = Plugin::new(&proxy.kubeconfig).start(&args);
        wait_for("it is taken", SOON, || !holder(&name).is_empty(), || running.stderr());
        (name, running)
    };
    let (name, mut running) = taking(&["true"]);
    running.signal("-USR1");
    running.signal("-USR2");
    assert_eq!(running.wait(), 0, "{}", running.stderr());
    assert_eq!(holder(&name), "");

    let trace = file();
    let (name, mut running) = taking(&["touch", trace.to_str().unwrap()]);
    running.signal("-QUIT");
    assert_eq!(running.wait(), 130, "{}", running.stderr());
    assert!(!trace.exists());
    assert_eq!(holder(&name), "");
}

/// As `suspend` does in a shell: Ctrl-Z would not stop that one.
#[test]
fn a_command_on_the_terminal_that_stops_itself_is_continued() {
    let name = name();
    let (mut shell, mut keyboard) = shell(&on_terminal());
    let command = "kill -STOP $$; echo on; kill -TSTP $$; exit 4";
    let line = shell_line(&[&[BINARY][..], &hold(&name, &["sh", "-c", command])].concat());
    keyboard.types(&format!("{line}; echo code-$?\r"));
    shell.until("it is continued", SOON, |screen| screen.contains("code-4"));
    leave(&mut shell, &mut keyboard);
}

#[test]
fn ctrl_z_on_a_pipeline_stops_neither_the_renewals_nor_the_pipeline() {
    let name = name();
    let (mut shell, mut keyboard) = shell(&on_terminal());
    let command = "echo pid-$$; n=0; while :; do n=$((n + 1)); echo line-$n; sleep 0.2; done";
    let line = shell_line(&[&[BINARY][..], &hold(&name, &["sh", "-c", command])].concat());
    keyboard.types(&format!("clear; {line} | cat\r"));
    let command = shown(&shell);
    keyboard.types("\x1a");
    std::thread::sleep(DURATION);
    assert!(runs(command), "{}", shell.screen());
    let last =
        |screen: &str| screen.lines().rev().find_map(|line| line.strip_prefix("line-")?.parse::<u32>().ok());
    let seen = last(&shell.screen()).unwrap();
    shell.until("it goes on", SOON, |screen| last(screen).unwrap() > seen + 2);
    assert!(!shell.screen().contains("Stopped"), "{}", shell.screen());
    keyboard.types("\x03");
    all_gone(&[command], SOON);
    wait_for("it is released", SOON, || holder(&name).is_empty(), || shell.screen());
    leave(&mut shell, &mut keyboard);
}

/// The command has the terminal, so that the shell of the script does not hear Ctrl-C.
#[test]
fn ctrl_c_ends_the_script_as_well_as_the_command() {
    let (mut shell, mut keyboard) = shell(&on_terminal());
    for (program, key, code) in [("sh", "\x03", 130), ("bash", "\x03", 130), ("sh", "\x1c", 131)] {
        let name = name();
        let line =
            shell_line(&[&[BINARY][..], &hold(&name, &["sh", "-c", "echo pid-$$; exec sleep 600"])].concat());
        let script = shell_line(&[program, "-c", &format!("ulimit -c 0; {line}; echo next-$((1 + 1))")]);
        keyboard.types(&format!("{script}; echo code-$?\r"));
        let command = shown_in_front(&shell);
        keyboard.types(key);
        all_gone(&[command], SOON);
        wait_for("it is released", SOON, || holder(&name).is_empty(), || shell.screen());
        // (After SIGINT an interactive bash leaves out the rest of the line.)
        keyboard.types("echo code-$?-$((40 + 2))\r");
        shell.until("the shell is back", SOON, |screen| screen.contains("-42"));
        let screen = shell.screen();
        assert!(!screen.contains("next-2"), "{program}: {screen}");
        assert!(screen.contains(&format!("code-{code}")), "{program}: {screen}");
        keyboard.types("clear\r");
        shell.until("the screen is empty", SOON, |screen| screen.trim() == "ready>");
    }
    // A command that takes it for something else goes on, and so does the script.
    let name = name();
    let command = "trap 'echo heard; exit 4' INT; echo pid-$$; while :; do sleep 0.02; done";
    let line = shell_line(&[&[BINARY][..], &hold(&name, &["sh", "-c", command])].concat());
    let script = shell_line(&["sh", "-c", &format!("{line}; echo next-$?")]);
    keyboard.types(&format!("clear; {script}\r"));
    shown_in_front(&shell);
    keyboard.types("\x03");
    shell.until("the script goes on", SOON, |screen| screen.contains("next-4"));
    leave(&mut shell, &mut keyboard);
}

#[test]
fn a_command_from_the_background_has_the_terminal_after_fg() {
    let name = name();
    let (mut shell, mut keyboard) = shell(&on_terminal());
    let command = "echo pid-$$; read x </dev/tty; echo got-$x; exit 4";
    let line = shell_line(&[&[BINARY][..], &hold(&name, &["sh", "-c", command])].concat());
    keyboard.types(&format!("clear; {line} &\r"));
    let command = shown(&shell);
    wait_for("it waits for the terminal", SOON, || state(command) == Some('T'), || shell.screen());
    keyboard.types("fg\r");
    // Bash has left its own mode of the terminal, in which Enter would end no line for others.
    shell.until("bash names the job", SOON, |screen| screen.contains("'hold'"));
    std::thread::sleep(Duration::from_millis(500));
    keyboard.types("it\r");
    shell.until("it reads from the terminal", SOON, |screen| screen.contains("got-it"));
    wait_for("it is released", SOON, || holder(&name).is_empty(), || shell.screen());
    keyboard.types("echo code-$?\r");
    shell.until("its code comes back", SOON, |screen| screen.contains("code-4"));
    leave(&mut shell, &mut keyboard);
}

#[test]
fn the_terminal_is_given_back_when_the_watchdog_is_killed() {
    let name = name();
    let (mut shell, mut keyboard) = shell(&on_terminal());
    let line =
        shell_line(&[&[BINARY][..], &hold(&name, &["sh", "-c", "echo pid-$$; exec sleep 600"])].concat());
    let script = shell_line(&["sh", "-c", &format!("{line}; echo code-$?; read x; echo got-$x")]);
    keyboard.types(&format!("clear; {script}\r"));
    let command = shown(&shell);
    let stat = fs::read_to_string(format!("/proc/{command}/stat")).unwrap();
    let dog: u32 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
    signal("-KILL", &[dog]);
    shell.until("the script goes on", SOON, |screen| screen.contains("code-75"));
    keyboard.types("it\r");
    shell.until("it reads from the terminal", SOON, |screen| screen.contains("got-it"));
    leave(&mut shell, &mut keyboard);
}

/// Leash and watchdog without a plugin: this test gives the orders. In a session of their own, as what a
/// service manager starts.
struct Guard {
    leash: std::process::Child,
    orders: std::process::ChildStdin,
    reports: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Guard {
    fn start(script: &str, variables: &[(&str, &str)]) -> Self {
        use std::io::BufRead as _;
        let mut leash = Command::new("setsid")
            .args(["sh", "-c", "exec \"$0\" __leash 3 4 3 $PPID 3<&0 4>&1 </dev/null >/dev/null", BINARY])
            .envs([("KUBECTL_LEASE_COMMAND_0", "sh"), ("KUBECTL_LEASE_COMMAND_1", "-c")])
            .env("KUBECTL_LEASE_COMMAND_2", script)
            .envs(variables.iter().copied())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let orders = leash.stdin.take().unwrap();
        let reports = BufReader::new(leash.stdout.take().unwrap()).lines();
        Self { leash, orders, reports }
    }

    fn order(&mut self, order: &str) {
        use std::io::Write as _;
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The number that is reported next.
    #[track_caller]
    fn reported(&mut self, word: &str) -> u32 {
        let report = self.reports.next().unwrap().unwrap();
        report.strip_prefix(word).unwrap_or_else(|| panic!("{report}")).trim().parse().unwrap()
    }
}

/// By this process, from which it descends.
#[test]
fn a_signal_to_every_process_may_come_to_the_watchdog_after_the_plugin_has_passed_it_on() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let (ready, told) = (file(), file());
    let script = format!(
        "trap 'echo term >>{}' TERM; touch {}; while :; do sleep 0.02; done",
        told.display(),
        ready.display()
    );
    let mut guard = Guard::start(&script, &[]);
    let now = kube_leases::clock::BootInstant::now().to_millis();
    guard.order(&format!("valid {} {}", now + 90_000, now + 91_000));
    let dog = guard.reported("watching");
    guard.reported("started");
    wait_for("it runs", SOON, || ready.exists(), String::new);
    let terms = || fs::read_to_string(&told).unwrap_or_default().lines().count();
    // Where this process was not run for a while, the watchdog's signal came too late to count as the same:
    // that tells nothing.
    let counted = (0..20).any(|_| {
        let (before, begun) = (terms(), Instant::now());
        guard.order("signal 15");
        std::thread::sleep(Duration::from_millis(20));
        kill(Pid::from_raw(i32::try_from(dog).unwrap()), Signal::SIGTERM).unwrap();
        let took = begun.elapsed();
        std::thread::sleep(Duration::from_secs(2));
        let in_time = took <= Duration::from_millis(40);
        assert!(terms() == before || !in_time, "{took:?}: the command, which has it too, gets it twice");
        in_time
    });
    assert!(counted, "this machine is too busy");
    let before = terms();
    guard.order("signal 15");
    wait_for("the next one is passed on", SOON, || terms() > before, String::new);
    drop(guard.orders);
    guard.leash.wait().unwrap();
}

/// The stack of a thread is more than there is, so that none can be started.
#[test]
fn where_no_thread_can_be_started_nothing_is_run_and_the_lease_is_released() {
    const STACK: (&str, &str) = ("RUST_MIN_STACK", "70000000000000");
    let (name, trace) = (name(), file());
    let outcome = plugin().env(STACK.0, STACK.1).run(&hold(&name, &["touch", trace.to_str().unwrap()]));
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    outcome.expect(6).says("cannot start the watchdog");
    assert!(!trace.exists());
    assert_ne!(spec(&name), Value::Null, "it was not even taken");
    assert_eq!(holder(&name), "");

    let mut guard = Guard::start("exit 0", &[STACK]);
    let report = guard.reports.by_ref().map(Result::unwrap).find(|report| !report.starts_with("watching"));
    assert!(report.as_ref().is_some_and(|report| report.starts_with("failed 126 ")), "{report:?}");
    assert!(guard.leash.wait().unwrap().success());
}

/// A user who can start processes of root's, as with sudo.
struct Unprivileged(PathBuf);

impl Unprivileged {
    /// `None` where this user cannot do that.
    fn new(proxy: &FaultProxy) -> Option<Self> {
        let user = Self(std::env::temp_dir().join(format!("kubectl-lease-{}", name())));
        fs::create_dir(&user.0).unwrap();
        let text = format!(
            "cp $(command -v setpriv) as-root && cp {BINARY} kubectl-lease && cp {} kubeconfig && \
             chmod 4755 as-root && chmod 755 . kubectl-lease && chmod 644 kubeconfig && \
             [ $(setpriv --reuid=65534 --clear-groups ./as-root --reuid=0 id -ru) = 0 ]",
            proxy.kubeconfig.display()
        );
        // By another process: a file that this one has open for writing cannot be executed by it.
        let done = Command::new("sh").args(["-c", &text]).current_dir(&user.0).status().unwrap();
        if !done.success() {
            eprintln!("skipped: it takes root, setpriv, and a temporary folder without nosuid");
        }
        done.success().then_some(user)
    }

    /// Holds a lease; the script prints the number of the process that runs as root, by `$ROOT`.
    fn hold(&self, name: &str, script: &str) -> (Running, Survivor) {
        let file = |name: &str| self.0.join(name).display().to_string();
        let args = ["--reuid=65534", "--clear-groups", &file("kubectl-lease")];
        let running = Plugin::new(file("kubeconfig"))
            .env("ROOT", format!("{} --reuid=0", file("as-root")))
            .start_by("setpriv", &[&args[..], &hold(name, &["sh", "-c", script])].concat());
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
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ended at last, whatever becomes of the test.
struct Survivor(u32);

impl Drop for Survivor {
    fn drop(&mut self) {
        if runs(self.0) {
            signal("-KILL", &[self.0]);
        }
    }
}

#[test]
fn a_sigusr1_that_could_not_be_sent_does_not_make_the_first_sigterm_the_last() {
    let proxy = FaultProxy::start(shared(), |_, _| Fault::None);
    let Some(user) = Unprivileged::new(&proxy) else { return };
    let (mut running, survivor) = user.hold(&name(), "echo $$; exec $ROOT sleep 600 >/dev/null 2>&1");
    running.signal("-USR1");
    running.until_stderr("it is spoken of", SOON, |text| text.contains("SIGUSR1 could not be sent to"));
    running.signal("-TERM");
    running.until_stderr("it is spoken of", SOON, |text| text.contains("SIGTERM could not be sent to"));
    assert!(runs(running.id()));
    running.signal("-TERM");
    assert_eq!(running.wait(), 77, "{}", running.stderr());
    drop(survivor);
}

#[test]
fn an_interrupt_is_heeded_also_when_the_watchdog_is_stopped_over_a_survivor() {
    let proxy = FaultProxy::start(shared(), |_, _| Fault::None);
    let Some(user) = Unprivileged::new(&proxy) else { return };
    let script = "$ROOT sleep 600 >/dev/null 2>&1 & echo $!; \
        until grep -q 'Uid:.0.0' /proc/$!/status; do sleep 0.02; done; exit 5";
    let (mut running, survivor) = user.hold(&name(), script);
    running.until_stderr("it is spoken of", SOON, |text| text.contains("the command has ended, but"));
    signal("-STOP", &[running.watchdog()]);
    running.signal("-INT");
    let begun = Instant::now();
    while runs(running.id()) && begun.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!runs(running.id()), "it hangs: {}", running.stderr());
    assert_eq!(running.wait(), 77, "{}", running.stderr());
    drop(survivor);
}

/// Nothing is renewed, and the watchdog is stopped: the plugin ends the command before the lease's
/// duration is over.
#[test]
fn the_plugin_is_in_time_when_the_watchdog_is_stopped() {
    let (name, beats) = (name(), file());
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let proxy = FaultProxy::start(shared(), move |method, _| {
        if method == "PATCH" && switch.load(Ordering::SeqCst) { Fault::Refuse(503) } else { Fault::None }
    });
    let script =
        format!("trap '' TERM; echo $$; while :; do date +%s.%N >>{}; sleep 0.01; done", beats.display());
    let args = ["hold", &name, "-n", "default", "-d", "36s", "--", "sh", "-c", &script];
    let running = Plugin::new(&proxy.kubeconfig).start(&args);
    let command = printed(&running, 1);
    broken.store(true, Ordering::SeqCst);
    let dog = running.watchdog();
    signal("-STOP", &[dog]);
    all_gone(&command, SOON * 5);
    let renewed: jiff::Timestamp = spec(&name)["renewTime"].as_str().unwrap().parse().unwrap();
    let beats = fs::read_to_string(&beats).unwrap();
    let last: f64 = beats.trim().lines().last().unwrap().parse().unwrap();
    #[allow(clippy::cast_precision_loss)]
    let after = last - renewed.as_microsecond() as f64 / 1e6;
    // SIGTERM comes after 24 s, SIGKILL after 33 s.
    assert!((24.0..36.0).contains(&after), "{after}");
}

#[test]
fn a_release_that_is_refused_names_the_reason() {
    let name = name();
    let proxy = FaultProxy::start(
        shared(),
        |method, _| {
            if method == "PATCH" { Fault::Refuse(503) } else { Fault::None }
        },
    );
    let args = ["hold", &name, "-n", "default", "-d", "1h", "--", "true"];
    let outcome = Plugin::new(&proxy.kubeconfig).run(&args).expect(0);
    assert!(!outcome.stderr.contains("conflict"), "{outcome:?}");
    outcome.says(&format!("{name} is not released, it will expire: ")).says("injected 503");
}
