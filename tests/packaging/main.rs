//! The archive and the manifest, with the real krew and the real kubectl.

#![allow(clippy::unwrap_used)]

#[path = "../harness/mod.rs"]
mod harness;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use harness::{ControlPlane, Shape, User};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const RELEASES: &str = "https://github.com/kubectl-lease/kubectl-lease/releases/download";

fn tool(script: &str) -> PathBuf {
    let output =
        Command::new(format!("{ROOT}/{script}")).stderr(std::process::Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{script} failed");
    PathBuf::from(text(&output.stdout).trim())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {told}");
    output
}

/// A command that has to fail, and what it says then.
#[track_caller]
fn fail(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{command:?}: {output:?}");
    text(&output.stderr)
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubectl-lease-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Serves the files of a folder on loopback, in the place of the release's downloads.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming().map(Result::unwrap) {
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && matches!(reader.read_line(&mut head), Ok(1..)) {}
            let path = head.split_whitespace().nth(1).unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            let (status, body) = fs::read(folder.join(name)).map_or((404, Vec::new()), |body| (200, body));
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let mut writer = connection;
            let _ = writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&body));
        }
    });
    address
}

/// Commits the plugin's manifest to an index, which for krew is a git repository.
fn publish(index: &Path, manifest: &str) {
    fs::create_dir_all(index.join("plugins")).unwrap();
    fs::write(index.join("plugins/lease.yaml"), manifest).unwrap();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(index)
            .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
            .args(args);
        succeed(&mut command)
    };
    if !index.join(".git").exists() {
        git(&["init", "--quiet", "--initial-branch=main"]);
    }
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "lease"]);
}

/// What `make generate` makes, as paths in the archive.
fn generated() -> Vec<String> {
    let files = |folder: &str| {
        let entries = fs::read_dir(format!("{ROOT}/{folder}")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let ours = names.filter(|name| name.contains("kubectl-lease"));
        ours.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    [files("man"), files("completions")].concat()
}

#[test]
fn the_real_krew_installs_upgrades_and_removes_what_make_release_makes() {
    let folder = Folder::new("packaging");
    let (krew, kubernetes) = (tool("tests/packaging/build"), tool("tests/control-plane/build"));
    let dist = folder.0.join("dist");
    let target = if cfg!(target_os = "macos") { "apple-darwin" } else { "unknown-linux-gnu" };
    let target = format!("{}-{target}", std::env::consts::ARCH);
    let make = |script: &str| {
        let mut command = Command::new(format!("{ROOT}/packaging/{script}"));
        let output = succeed(command.args([env!("CARGO_BIN_EXE_kubectl-lease"), &target]).arg(&dist));
        text(&output.stdout)
    };
    let path = PathBuf::from(make("archive").trim());
    let first = fs::read(&path).unwrap();
    let told = make("local");
    assert!(first == fs::read(&path).unwrap(), "made twice, the same bytes");
    let listed = text(&succeed(Command::new("tar").arg("tzf").arg(&path)).stdout);
    for file in ["kubectl-lease", "LICENSE", "README.md"].into_iter().map(String::from).chain(generated()) {
        assert!(listed.lines().any(|line| line == file), "{file} is not in {listed}");
    }

    let server = serve(dist.clone());
    let manifest = fs::read_to_string(dist.join("lease.yaml")).unwrap();
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    assert!(manifest.contains(&format!("  version: {version}\n")), "{manifest}");
    let description =
        manifest.lines().find_map(|line| line.trim().strip_prefix("shortDescription: ")).unwrap();
    assert!(description.len() <= 50, "krew takes 50 characters: {description}");
    assert!(!manifest.contains("{{"), "{manifest}");
    let here = manifest.replace(RELEASES, &server);
    let file = folder.0.join("lease.yaml");
    fs::write(&file, &here).unwrap();
    let (index, home) = (folder.0.join("index"), folder.0.join("home"));
    publish(&index, &here);
    fs::create_dir_all(&home).unwrap();
    let search = [home.join(".krew/bin"), kubernetes, krew, PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
    let command = |program: &str, args: &[&str]| {
        let mut command = Command::new("env");
        command.env_clear().env("HOME", &home).env("PATH", std::env::join_paths(&search).unwrap());
        command
            .env("KREW_DEFAULT_INDEX_URI", &index)
            .env("KREW_NO_UPGRADE_CHECK", "1")
            .arg(program)
            .args(args);
        command
    };
    // What `make release` says, pasted into a shell.
    let install = told.lines().last().unwrap();
    assert!(
        install.starts_with("kubectl krew install ") && install.contains(path.to_str().unwrap()),
        "{told}"
    );
    succeed(&mut command("bash", &["-c", install]));
    succeed(&mut command("kubectl", &["lease", "--version"]));
    let stored = home.join(".krew/store/lease").join(version);
    assert!(generated().iter().all(|file| stored.join(file).is_file()), "where the README says");
    // Only removing it needs an index.
    succeed(&mut command("kubectl", &["krew", "update"]));
    succeed(&mut command("kubectl", &["krew", "uninstall", "lease"]));
    // The validator installs it too, for every platform that it names.
    succeed(&mut command("validate-krew-manifest", &["-manifest", file.to_str().unwrap()]));
    succeed(&mut command("kubectl", &["krew", "install", "lease"]));
    let help = text(&succeed(&mut command("kubectl", &["lease", "--help"])).stdout);
    assert!(help.contains("Usage: kubectl lease COMMAND"), "{help}");
    // Completion beside the link that krew keeps up to date.
    succeed(&mut command("kubectl", &["lease", "completion", "install"]));
    let choices = text(&succeed(&mut command("kubectl", &["__complete", "lease", "maint", "acq"])).stdout);
    assert!(choices.starts_with("acquire"), "{choices}");

    // As an administrator finds it on a cluster that has everything, and somebody without rights.
    let plane = ControlPlane::start(&Shape::default());
    let doctor = |user: User, with: &[&str]| {
        let args = [&["lease", "doctor"], with].concat();
        command("kubectl", &args).env("KUBECONFIG", plane.kubeconfig(user, 0)).output().unwrap()
    };
    let guard = folder.0.join("guard.yaml");
    fs::write(&guard, doctor(User::Nobody, &["--print", "guard"]).stdout).unwrap();
    plane.kubectl(&["apply", "-f", guard.to_str().unwrap()]);
    plane.await_elector();
    let well = doctor(User::Admin, &["--no-headers"]);
    assert_eq!(well.status.code(), Some(0), "{well:?}");
    let lines = text(&well.stdout);
    assert!(lines.lines().count() > 15 && lines.lines().all(|line| line.contains("   ok   ")), "{lines}");
    let ill = doctor(User::Nobody, &[]);
    assert_eq!(ill.status.code(), Some(4), "{ill:?}");
    assert!(text(&ill.stdout).contains("you cannot"), "{ill:?}");

    publish(
        &index,
        &here
            .replace(version, "v99.0.0")
            .replace("download/v99.0.0", "download/x")
            .replace("kubectl-lease-v99.0.0-", &format!("kubectl-lease-{version}-")),
    );
    succeed(&mut command("kubectl", &["krew", "update"]));
    succeed(&mut command("kubectl", &["krew", "upgrade", "lease"]));
    let listed = text(&succeed(&mut command("kubectl", &["krew", "list"])).stdout);
    assert!(listed.contains("lease"), "{listed}");
    assert!(home.join(".krew/store/lease/v99.0.0").is_dir());
    succeed(&mut command("kubectl", &["lease", "--version"]));
    let choices = text(&succeed(&mut command("kubectl", &["__complete", "lease", "maint", "acq"])).stdout);
    assert!(choices.starts_with("acquire"), "after the upgrade: {choices}");
    succeed(&mut command("kubectl", &["krew", "uninstall", "lease"]));
    assert!(!command("kubectl", &["lease", "--version"]).output().unwrap().status.success());
}

#[test]
fn the_manifest_has_the_platforms_that_there_are_archives_for_and_all_can_be_demanded() {
    let folder = Folder::new("manifest");
    let manifest = |args: &[&str]| {
        let mut command = Command::new(format!("{ROOT}/packaging/manifest"));
        command.arg(&folder.0).args(args);
        command
    };
    let add = |name: &str| fs::write(folder.0.join(name), name).unwrap();
    let archive = |platform: &str| format!("kubectl-lease-v{}-{platform}.tar.gz", env!("CARGO_PKG_VERSION"));
    assert!(fail(&mut manifest(&[])).contains("has no archive of v"));

    add(&archive("linux-amd64"));
    let one = text(&succeed(&mut manifest(&[])).stdout);
    assert_eq!(one.matches("sha256: ").count(), 1, "{one}");
    let missing = format!("{} is missing", archive("linux-arm64"));
    assert!(fail(&mut manifest(&["all"])).contains(&missing));

    for platform in ["linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64", "windows-arm64"] {
        add(&archive(platform));
    }
    let all = text(&succeed(&mut manifest(&["all"])).stdout);
    assert_eq!(all.matches("sha256: ").count(), 6, "{all}");

    add(&archive("plan9-amd64"));
    assert!(fail(&mut manifest(&[])).contains("is of no platform"));
}

/// `build.rs` reads them for `--version`, and `src` includes files of `docs`: without them the published
/// package does not compile, or compiles and says nothing of the releases that it is tested on.
#[test]
fn the_published_package_has_what_it_is_built_from() {
    let mut list = Command::new(env!("CARGO"));
    list.current_dir(ROOT).args(["package", "--list", "--allow-dirty", "--locked", "--offline"]);
    let listed = text(&succeed(list.args(["--package", "kubectl-lease"])).stdout);
    let folders = fs::read_dir(format!("{ROOT}/tests/control-plane")).unwrap();
    let names = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
    let releases: Vec<_> = names.filter(|name| name.starts_with('v')).collect();
    assert!(releases.len() >= 2, "the newest and the oldest: {releases:?}");
    for release in releases {
        let folder = format!("tests/control-plane/{release}/");
        assert!(listed.lines().any(|line| line.starts_with(&folder)), "nothing of {folder} in {listed}");
    }
    for file in ["build.rs", "docs/rbac.yaml", "docs/guard.yaml", "docs/exit-codes.md"] {
        assert!(listed.lines().any(|line| line == file), "{file} is not in {listed}");
    }
}

/// A licence that is a link outside of the folder of a package is packaged as what it leads to.
#[test]
fn the_published_library_has_its_licence_and_its_page() {
    let mut list = Command::new(env!("CARGO"));
    list.current_dir(ROOT).args(["package", "--list", "--allow-dirty", "--locked", "--offline"]);
    let listed = text(&succeed(list.args(["--package", "kube-leases"])).stdout);
    for file in ["LICENSE", "README.md", "src/lib.rs", "examples/leader.rs", "examples/reboot-controller.rs"]
    {
        assert!(listed.lines().any(|line| line == file), "{file} is not in {listed}");
    }
    let [own, root] =
        ["kube-leases/LICENSE", "LICENSE"].map(|file| fs::read(format!("{ROOT}/{file}")).unwrap());
    assert!(own == root, "another licence than the plugin's");
}

/// A library chooses no version of `k8s-openapi`: for itself alone it takes the newest, as docs.rs does.
#[test]
fn the_published_library_compiles_from_its_package() {
    let mut package = Command::new(env!("CARGO"));
    package.current_dir(ROOT).args(["package", "--allow-dirty", "--locked", "--package", "kube-leases"]);
    succeed(package.args(["--features", "k8s-openapi/latest"]));
}

#[test]
fn an_archive_has_neither_the_time_of_a_repository_around_it_nor_files_that_lie_about() {
    let folder = Folder::new("around");
    let source = folder.0.join("source");
    fs::create_dir(&source).unwrap();
    let mut copy = Command::new("cp");
    copy.current_dir(ROOT).args([
        "-R",
        "packaging",
        "man",
        "completions",
        "Cargo.toml",
        "LICENSE",
        "README.md",
    ]);
    succeed(copy.arg(&source));
    fs::write(source.join("man/notes.txt"), "").unwrap();
    fs::write(source.join("completions/kubectl-lease.bash.orig"), "").unwrap();
    publish(&folder.0, "");
    let mut archive = Command::new(source.join("packaging/archive"));
    archive.env_remove("SOURCE_DATE_EPOCH").args(["LICENSE", "x86_64-unknown-linux-musl", "dist"]);
    succeed(&mut archive);

    let path =
        source.join("dist").join(format!("kubectl-lease-v{}-linux-amd64.tar.gz", env!("CARGO_PKG_VERSION")));
    let listed = text(&succeed(Command::new("tar").env("TZ", "UTC").arg("tzvf").arg(path)).stdout);
    assert!(listed.lines().all(|line| line.contains("1970")), "{listed}");
    assert!(!listed.contains("notes") && !listed.contains(".orig"), "{listed}");
}

#[test]
fn completion_is_linked_to_what_kubectl_would_run() {
    let folder = Folder::new("completion");
    let [broken, bin, other] = ["broken", "bin", "other"].map(|name| folder.0.join(name));
    for path in [&broken, &bin, &other] {
        fs::create_dir(path).unwrap();
    }
    // Not executable: kubectl passes over it.
    fs::write(broken.join("kubectl-lease"), "").unwrap();
    let plugin = bin.join("kubectl-lease");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-lease"), &plugin).unwrap();
    let install = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-lease"));
        command.current_dir(&folder.0).env("PATH", "broken:bin:/usr/bin:/bin");
        command.args(["completion", "install"]).args(args);
        command
    };
    let target = |link: &Path| fs::read_link(link).unwrap();
    succeed(&mut install(&[]));
    let link = bin.join("kubectl_complete-lease");
    assert_eq!(target(&link), plugin, "from everywhere, though the PATH is relative");
    let again = text(&succeed(&mut install(&[])).stdout);
    assert!(again.contains("is there already"), "{again}");

    let link = other.join("kubectl_complete-lease");
    std::os::unix::fs::symlink("/nowhere/kubectl-lease", &link).unwrap();
    succeed(&mut install(&["--dir", "other"]));
    assert_eq!(target(&link), plugin, "one that leads nowhere is renewed");
    fs::remove_file(&link).unwrap();
    fs::write(&link, "somebody's own").unwrap();
    assert!(fail(&mut install(&["--dir", "other"])).contains("exists and is not a link to kubectl-lease"));
}
