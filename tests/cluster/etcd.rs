//! Holds while etcd has trouble: its leader is stopped, a minority is cut off, the majority is away.
//!
//! Of three kube-apiservers the first talks to all three members of etcd, the others each to their own, as
//! kubeadm's do. The third member is the one in trouble: what is held through the third kube-apiserver
//! is lost, what is held through the second is kept. Who waits for it through the third one sees no
//! renewals meanwhile, and has to be kept from taking it.

use std::{fs, thread, time::Duration};

use crate::{
    harness::{
        ControlPlane, Shape, User,
        disk::{self, Disk, Line},
        etcd::{Etcd, Read},
        random,
    },
    plugin::{Plugin, Running, wait_for},
};

const SOON: Duration = Duration::from_secs(30);

/// The member in trouble, and the kube-apiserver that talks to it alone; those of the healthy second one;
/// and the kube-apiserver that talks to all.
const TROUBLED: usize = 2;
const HEALTHY: usize = 1;
const ALL: usize = 0;

/// The members that are never in trouble alone.
const WELL: [usize; 2] = [0, HEALTHY];

/// How a command holds a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Hold,
    MaintRun,
}

/// A lease, who holds it, and who waits for it.
struct Contest {
    lease: String,
    seconds: u64,
    holder: Running,
    contender: Running,
}

/// Leases that go through the same trouble, and what the commands wrote that ran under them.
struct Scene {
    disk: Disk,
    contests: Vec<Contest>,
}

impl Scene {
    fn new(plane: &ControlPlane) -> Self {
        let disk = Disk::new(&plane.folder.join(format!("disk-{}", random())));
        Self { disk, contests: Vec::new() }
    }

    /// The file that ends all commands.
    fn end(&self) -> String {
        format!("{}.end", self.disk.folder.display())
    }

    /// Runs a command under a lease, through a kube-apiserver. It says in a file that it lives, and does
    /// not end when it is asked to: only when it is killed, or this scene is over.
    fn start(&self, plugin: &Plugin, verb: Verb, lease: &str, seconds: u64, role: &str) -> Running {
        let script = format!(
            "trap '' TERM; exec 9<> <(:); while :; do read -r now _ </proc/uptime; \
             echo \"$now $KUBECTL_LEASE_TOKEN {role}\" >>{}; [ ! -e {} ] || exit 0; read -rt 0.05 -u 9; done",
            self.disk.folder.join(lease).display(),
            self.end(),
        );
        let duration = format!("{seconds}s");
        let what = match verb {
            Verb::Hold => &["hold", lease, "-n", "default"][..],
            Verb::MaintRun => &["maint", "run", lease],
        };
        let how = ["-d", &duration, "--wait", "--", "bash", "-c", &script];
        plugin.start(&[what, &how].concat())
    }

    /// Has a lease held through one kube-apiserver, and waited for through another.
    fn contest(&mut self, plane: &ControlPlane, verb: Verb, seconds: u64, through: [usize; 2]) -> usize {
        let [holders, contenders] = through.map(|n| Plugin::new(plane.kubeconfig(User::Admin, n)));
        let lease = format!("etcd-{}", random());
        if verb == Verb::MaintRun {
            let node =
                serde_json::json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": lease } });
            plane.apply(&node);
        }
        let holder = self.start(&holders, verb, &lease, seconds, "holder");
        wait_for("the command runs", SOON, || !self.lines(&lease).is_empty(), || holder.stderr());
        let contender = self.start(&contenders, verb, &lease, seconds, "contender");
        contender.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
        self.contests.push(Contest { lease, seconds, holder, contender });
        self.contests.len() - 1
    }

    fn lines(&self, lease: &str) -> Vec<Line> {
        self.disk.lines(lease)
    }

    /// Whether the contender has the lease.
    fn is_taken(&self, contest: usize) -> bool {
        self.lines(&self.contests[contest].lease).iter().any(|line| line.node == "contender")
    }

    /// No renewal was done since `trouble`: the command was ended before another may have the lease.
    #[track_caller]
    fn expect_ended_in_time(&self, contest: usize, trouble: u64) {
        let Contest { lease, seconds, .. } = &self.contests[contest];
        let lines = self.lines(lease);
        let last = lines.iter().filter(|line| line.node == "holder").map(|line| line.time).max().unwrap();
        let ran = last.saturating_sub(trouble);
        assert!(ran < *seconds * 100, "it ran for {ran}0 ms after the last renewal");
    }

    #[track_caller]
    fn await_taken(&self, contest: usize) {
        let contender = &self.contests[contest].contender;
        wait_for("the contender has it", SOON, || self.is_taken(contest), || contender.stderr());
    }

    /// Ends what still runs. The leases were `lost` or `kept`, or either; each changes hands once, no two
    /// commands ran at the same time, and the fencing token grows.
    fn finish(mut self, lost: &[usize], kept: &[usize]) {
        fs::write(self.end(), "").unwrap();
        for (n, Contest { holder, contender, .. }) in self.contests.iter_mut().enumerate() {
            let (code, told) = (holder.wait(), holder.stderr());
            let is_lost = code == 75 && told.contains("could not be renewed in time");
            let (may_be_kept, may_be_lost) = (!lost.contains(&n), !kept.contains(&n));
            let expected = (code == 0 && may_be_kept) || (is_lost && may_be_lost);
            assert!(expected, "{code}: {told}\n{}", self.disk.describe());
            assert_eq!(contender.wait(), 0, "{}", contender.stderr());
        }
        assert!(self.disk.findings().is_empty(), "{:?}\n{}", self.disk.findings(), self.disk.describe());
        for Contest { lease, .. } in &self.contests {
            let writers = disk::writers(&self.disk.lines(lease));
            let mut terms: Vec<_> =
                writers.iter().map(|writer| (writer.uid.parse::<u64>().unwrap(), &*writer.node)).collect();
            terms.dedup();
            let told = self.disk.describe();
            assert!(matches!(terms[..], [(_, "holder"), (_, "contender")]), "{terms:?}\n{told}");
            assert!(terms[0].0 < terms[1].0, "the token grows: {terms:?}\n{told}");
        }
    }
}

/// Waits for the rest of so many seconds since a moment of the disk's clock.
fn wait_until(since: u64, seconds: u64) {
    let left = (since + seconds * 100).saturating_sub(disk::now());
    thread::sleep(Duration::from_millis(left * 10));
}

/// The troubled member is away for longer than the leases last. It is the leader, or another is.
fn trouble_with_one(plane: &ControlPlane, leader: usize, inflict: impl Fn(&Etcd), heal: impl Fn(&Etcd)) {
    plane.etcd.make_leader(leader);
    // Until there is a new leader no renewal is done.
    let seconds = if leader == TROUBLED { 12 } else { 6 };
    let mut scene = Scene::new(plane);
    let lost = [Verb::Hold, Verb::MaintRun].map(|verb| scene.contest(plane, verb, 6, [TROUBLED, HEALTHY]));
    // A third of its requests go to the member in trouble: it is kept or lost, but never doubled.
    scene.contest(plane, Verb::MaintRun, 6, [ALL, HEALTHY]);
    // The last, so that it is not due for renewal at once.
    let kept = scene.contest(plane, Verb::Hold, seconds, [HEALTHY, TROUBLED]);
    inflict(&plane.etcd);
    let began = disk::now();
    plane.etcd.await_leader_among(&WELL);
    assert!(!plane.etcd.reads(TROUBLED, Read::Linearizable), "it is neither stopped nor cut off");
    for contest in lost {
        scene.await_taken(contest);
        scene.expect_ended_in_time(contest, began);
    }
    // Had it not been renewed meanwhile, it would be over by now.
    wait_until(began, seconds + 1);
    heal(&plane.etcd);
    plane.etcd.await_leader_among(&[0, 1, 2]);
    // What its contender has sent meanwhile arrives now, if it was not given up.
    thread::sleep(Duration::from_secs(1));
    scene.finish(&lost, &[kept]);
}

/// Two of three members are away for longer than the leases last: one is stopped, and one crashes.
fn majority_away(plane: &mut ControlPlane) {
    let seconds = 6;
    let mut scene = Scene::new(plane);
    let lost =
        [(Verb::MaintRun, [ALL, TROUBLED]), (Verb::Hold, [HEALTHY, ALL]), (Verb::Hold, [TROUBLED, HEALTHY])]
            .map(|(verb, through)| scene.contest(plane, verb, seconds, through));
    let [stopped, crashed] = WELL;
    plane.etcd.members[stopped].signal("-STOP");
    plane.etcd.members[crashed].kill();
    let began = disk::now();
    wait_until(began, seconds + 1);
    for contest in lost {
        scene.expect_ended_in_time(contest, began);
        assert!(!scene.is_taken(contest), "without a majority:\n{}", scene.disk.describe());
    }
    plane.etcd.members[stopped].signal("-CONT");
    plane.etcd.members[crashed].start();
    for contest in lost {
        scene.await_taken(contest);
    }
    scene.finish(&lost, &[]);
}

/// Clients still reach it.
fn cut_off(etcd: &Etcd) {
    etcd.cut_off(TROUBLED);
    assert!(etcd.reads(TROUBLED, Read::Serializable), "it answers from what it has");
}

#[test]
fn a_hold_is_kept_or_ended_in_time_while_etcd_has_trouble() {
    let mut plane = ControlPlane::start(&Shape {
        etcd_members: 3,
        apiservers: 3,
        stacked: &[HEALTHY, TROUBLED],
        ..Shape::default()
    });
    if plane.apiservers.len() < 3 {
        return;
    }
    trouble_with_one(
        &plane,
        TROUBLED,
        |etcd| etcd.members[TROUBLED].signal("-STOP"),
        |etcd| etcd.members[TROUBLED].signal("-CONT"),
    );
    for leader in [HEALTHY, TROUBLED] {
        trouble_with_one(&plane, leader, cut_off, |etcd| etcd.heal(TROUBLED));
    }
    majority_away(&mut plane);
}
