//! Runs the plugin as a user would: the built binary, a kubeconfig, a pipe or a terminal.

#![allow(dead_code, clippy::unwrap_used)]

use std::{
    io::{Read, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// No command of these tests takes longer than this.
const LIMIT: Duration = Duration::from_secs(60);

/// The built binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_kubectl-lease");

pub struct Plugin {
    kubeconfig: PathBuf,
    environment: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Outcome {
    /// The words of each line of a table.
    pub fn rows(&self) -> Vec<Vec<&str>> {
        self.stdout.lines().map(|line| line.split_whitespace().collect()).collect()
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "'{words}' is not in {self:#?}");
        self
    }
}

/// What this process was started to ignore, as in the background of a script, the plugin would ignore
/// too. A process that listens to a signal starts others with its default.
#[cfg(unix)]
fn ignore_no_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _context = runtime.enter();
        let kinds = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit()];
        for kind in kinds.into_iter().filter(|kind| kube_leases::signals::is_ignored(*kind)) {
            drop(signal(kind).unwrap());
        }
    });
}

impl Plugin {
    pub fn new(kubeconfig: impl AsRef<Path>) -> Self {
        #[cfg(unix)]
        ignore_no_signal();
        Self { kubeconfig: kubeconfig.as_ref().to_owned(), environment: Vec::new() }
    }

    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    fn environment(&self) -> impl Iterator<Item = (String, String)> {
        // Without SystemRoot there are no sockets on Windows.
        let kept = ["PATH", "SystemRoot"].into_iter();
        let kept = kept.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
        let fixed = [
            ("KUBECONFIG".to_owned(), self.kubeconfig.display().to_string()),
            ("TERM".to_owned(), "xterm-256color".to_owned()),
        ];
        kept.chain(fixed).chain(self.environment.clone())
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(self.environment()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Outcome {
        let began = Instant::now();
        let mut running = self.start(args);
        let code = running.wait();
        Outcome { code, stdout: running.stdout(), stderr: running.stderr(), took: began.elapsed() }
    }

    /// Starts it with pipes for its output.
    pub fn start(&self, args: &[&str]) -> Running {
        self.start_by(BINARY, args)
    }

    /// Starts a program that starts it, such as nohup, in its environment.
    pub fn start_by(&self, program: &str, args: &[&str]) -> Running {
        let mut child = self.command(program, args).spawn().unwrap();
        let stdout = Gathered::from(child.stdout.take().unwrap());
        let stderr = Gathered::from(child.stderr.take().unwrap());
        Running { child, stdout, stderr }
    }

    /// Starts it on a terminal of this size.
    pub fn start_on_terminal(&self, args: &[&str], rows: u16, columns: u16) -> Terminal {
        self.start_on_terminal_by(BINARY, args, rows, columns)
    }

    /// Starts a program on a terminal, such as a shell, in its environment.
    pub fn start_on_terminal_by(&self, program: &str, args: &[&str], rows: u16, columns: u16) -> Terminal {
        let size = PtySize { rows, cols: columns, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let output = Gathered::from(pair.master.try_clone_reader().unwrap());
        Terminal { child, output, master: pair.master, sizes: vec![((rows, columns), 0)] }
    }
}

/// Everything that a stream has brought so far.
struct Gathered(Arc<Mutex<Vec<u8>>>, Option<thread::JoinHandle<()>>);

impl Gathered {
    fn from(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                shared.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self(bytes, Some(reader))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Reads to the end, which comes when the last process has closed it; but what was left running
    /// is not waited for.
    fn finish(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        if let Some(reader) = self.1.take() {
            while !reader.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

pub struct Running {
    child: Child,
    stdout: Gathered,
    stderr: Gathered,
}

impl Running {
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until stdout satisfies a condition; how long that took.
    #[track_caller]
    pub fn until(&self, what: &str, within: Duration, condition: impl Fn(&str) -> bool) -> Duration {
        wait_for(
            what,
            within,
            || condition(&self.stdout()),
            || format!("{}\n{}", self.stdout(), self.stderr()),
        )
    }

    #[track_caller]
    pub fn until_stderr(&self, what: &str, within: Duration, condition: impl Fn(&str) -> bool) -> Duration {
        wait_for(
            what,
            within,
            || condition(&self.stderr()),
            || format!("{}\n{}", self.stdout(), self.stderr()),
        )
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process between the plugin and the watchdog, which is its only child.
    #[track_caller]
    pub fn leash(&self) -> u32 {
        only_child(self.id())
    }

    /// The watchdog, which starts the command.
    #[track_caller]
    pub fn watchdog(&self) -> u32 {
        let watchdog = only_child(self.leash());
        let name = std::fs::read_to_string(format!("/proc/{watchdog}/comm")).unwrap();
        assert_eq!(name.trim_end(), "lease-watchdog");
        watchdog
    }

    #[cfg(unix)]
    pub fn signal(&self, signal: &str) {
        send(signal, self.child.id());
    }

    /// The exit code; 128 and the number for a signal.
    pub fn wait(&mut self) -> i32 {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.stdout.finish();
                self.stderr.finish();
                return exit_code(status);
            }
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                panic!("still running after {LIMIT:?}:\n{}\n{}", self.stdout(), self.stderr());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(unix)]
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
}

#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap()
}

/// Sends a signal, named as an option of `kill`: `-TERM`.
#[cfg(unix)]
#[track_caller]
pub fn send(signal: &str, process: u32) {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let signal: Signal = format!("SIG{}", signal.trim_start_matches('-')).parse().unwrap();
    kill(Pid::from_raw(i32::try_from(process).unwrap()), signal).unwrap();
}

#[track_caller]
fn only_child(process: u32) -> u32 {
    let found = children(process);
    assert_eq!(found.len(), 1, "children of {process}: {found:?}");
    found[0]
}

/// The processes that a process has started and that are not reaped.
pub fn children(process: u32) -> Vec<u32> {
    std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .map(|id| id.parse().unwrap())
        .collect()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The plugin on a terminal, and what a person would see there.
pub struct Terminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    output: Gathered,
    master: Box<dyn portable_pty::MasterPty + Send>,
    /// The sizes it had, and how much had been written by then.
    sizes: Vec<((u16, u16), usize)>,
}

impl Terminal {
    /// The lines on the screen.
    pub fn screen(&self) -> String {
        self.parsed().screen().contents()
    }

    /// The screen with its colours, as escape sequences.
    pub fn coloured(&self) -> String {
        self.parsed().screen().contents_formatted()
    }

    /// Whether it was left without a cursor.
    pub fn hides_cursor(&self) -> bool {
        self.parsed().screen().hide_cursor()
    }

    /// Everything that was written to it.
    pub fn output(&self) -> String {
        self.output.text()
    }

    fn parsed(&self) -> vt100::Parser {
        let size = |n: u16| n.try_into().unwrap();
        let bytes = self.output.bytes();
        let (first, ..) = self.sizes[0];
        let mut parser = vt100::Parser::new(size(first.0), size(first.1), 0);
        for (n, ((rows, columns), from)) in self.sizes.iter().enumerate() {
            let to = self.sizes.get(n + 1).map_or(bytes.len(), |(_, next)| *next);
            parser.screen_mut().set_size(size(*rows), size(*columns));
            parser.process(&bytes[*from..to]);
        }
        parser
    }

    /// Gives the window another size.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        self.master.resize(PtySize { rows, cols: columns, ..PtySize::default() }).unwrap();
        self.sizes.push(((rows, columns), self.output.bytes().len()));
    }

    #[track_caller]
    pub fn until(&self, what: &str, within: Duration, condition: impl Fn(&str) -> bool) -> Duration {
        wait_for(what, within, || condition(&self.screen()), || self.screen())
    }

    /// Types something.
    pub fn types(&self, keys: &str) {
        let mut writer = self.master.take_writer().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// To type again and again, which is only possible with one and the same.
    pub fn keyboard(&self) -> Keyboard {
        Keyboard(self.master.take_writer().unwrap())
    }

    pub fn wait(&mut self) -> u32 {
        self.child.wait().unwrap().exit_code()
    }
}

pub struct Keyboard(Box<dyn std::io::Write + Send>);

impl Keyboard {
    pub fn types(&mut self, keys: &str) {
        self.0.write_all(keys.as_bytes()).unwrap();
        self.0.flush().unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[track_caller]
pub fn wait_for(
    what: &str,
    within: Duration,
    condition: impl Fn() -> bool,
    state: impl Fn() -> String,
) -> Duration {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < within, "not within {within:?}: {what}\n{}", state());
        thread::sleep(Duration::from_millis(20));
    }
    began.elapsed()
}
