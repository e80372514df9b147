//! `tests/harness/at-once`, by which `make demo` compiles two things at the same time.

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/at-once");

fn at_once(args: &[&str]) -> (Output, String) {
    let output = Command::new(SCRIPT).args(args).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, told)
}

#[test]
fn commands_run_at_the_same_time_and_say_when_they_are_ready() {
    // Each waits for the other.
    let folder = std::env::temp_dir().join(format!("kubectl-lease-at-once-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let [one, two] = [("a", "b"), ("b", "a")].map(|(own, other)| {
        let folder = folder.display();
        format!(
            "echo words; touch {folder}/{own}
             for _ in $(seq 100); do [ -e {folder}/{other} ] && exit; sleep 0.1; done; exit 1"
        )
    });
    let (output, told) = at_once(&["one", &one, "two", &two]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(told.contains("  one: ready after ") && told.contains("  two: ready after "), "{told}");
    assert!(!told.contains("words"), "only of what fails: {told}");
}

#[test]
fn the_first_that_fails_shows_its_log_and_ends_the_others() {
    let began = Instant::now();
    let (output, told) =
        at_once(&["slow", "echo quiet; sleep 60", "bad", "echo to stdout; echo to stderr >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{told}");
    assert!(began.elapsed() < Duration::from_secs(30), "{told}");
    assert!(told.contains("error: bad failed (exit code 7)"), "{told}");
    assert!(told.contains("to stdout\nto stderr\n") && !told.contains("quiet"), "{told}");
}

#[test]
fn on_a_terminal_there_is_one_line_for_all() {
    let pair = native_pty_system().openpty(PtySize { rows: 6, cols: 60, ..PtySize::default() }).unwrap();
    let mut command = CommandBuilder::new(SCRIPT);
    command.args([
        "one",
        "echo compiling a; sleep 60",
        "two",
        "echo compiling a name that is much too long; sleep 60",
    ]);
    command.env("TERM", "xterm");
    let mut child = pair.slave.spawn_command(command).unwrap();
    // Reading ends with the script.
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut parser = vt100::Parser::new(6.try_into().unwrap(), 60.try_into().unwrap(), 0);
    let mut bytes = [0; 512];
    let expected = "one: compiling a   two: compiling a name that is";
    // Until it has been written anew.
    let seconds = |screen: &str| screen.trim_start().split_once('s')?.0.parse::<u32>().ok();
    for _ in 0..10 {
        let count = std::io::Read::read(&mut reader, &mut bytes).unwrap();
        parser.process(&bytes[..count]);
        if seconds(&parser.screen().contents()) >= Some(2) {
            break;
        }
    }
    let screen = parser.screen().contents();
    pair.master.take_writer().unwrap().write_all(b"\x03").unwrap();
    assert_eq!(child.wait().unwrap().exit_code(), 130, "Ctrl-C");
    assert_eq!(screen.lines().count(), 1, "{screen}");
    assert!(screen.contains(expected), "{screen}");
}
