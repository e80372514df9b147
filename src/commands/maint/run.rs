use std::{ffi::OsString, sync::Arc, time::Duration};

use super::{acquire::claims, blocked, take_all, targets, tell_remarks, who};
use crate::{
    cli::Run,
    cluster::{
        Cluster,
        single::{Address, Writing},
    },
    domain::{
        deadline::Schedule,
        maintenance::{self, Standing},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
    session::{Claim, Held, Rule},
};

pub async fn run(args: &Run, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let (who, targets) =
        tokio::try_join!(who(&args.identity, false, cluster), targets(&args.nodes, cluster))?;
    if args.wait.wait.is_none() {
        let now = cluster.server_time();
        for target in &targets {
            let lease = target.lease.as_ref().map(|lease| &*lease.value);
            let standing = Standing::of(lease.map(|lease| &lease.spec), &who, now);
            if matches!(standing, Standing::Ours { until, .. } if until.is_none_or(|until| now.0 <= until)) {
                return Err(blocked(&target.node.name, &standing, lease, now));
            }
        }
    }
    let who = if args.identity.holder.is_some() { who } else { who.unique(&term()) };
    tell_remarks(cluster, printer);
    let claims = claims(targets, &args.taking, |target| Claim {
        at: Address::new(maintenance::NAMESPACE, &target.node.name),
        who: who.clone(),
        seconds: i32::try_from(args.duration.as_secs()).unwrap_or(i32::MAX),
        reason: args.reason.clone(),
        owner: Some(target.node.clone()),
        rule: Rule::Process,
        take_malformed: args.taking.take_malformed,
        create_namespace: true,
        writing: Writing::default(),
        attempts: Arc::default(),
    })?;
    let taken = take_all(&claims, &args.wait, cluster, printer).await?;
    let held: Vec<Held> = taken.into_iter().map(|(held, _)| held).collect();
    under(&held, Schedule::new(args.duration), &args.command, cluster, printer).await
}

/// How long letting go may take at the end.
pub const RELEASE: Duration = Duration::from_secs(10);

/// What makes a process's holder identity its own.
pub fn term() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let (one, other) = (RandomState::new(), RandomState::new());
    format!("{:08x}", (one.hash_one(std::process::id()) ^ other.hash_one(std::time::SystemTime::now())) >> 32)
}

/// Runs a command under leases and releases them when it has ended, with everything that it started.
#[cfg(unix)]
pub async fn under(
    held: &[Held],
    schedule: Schedule,
    command: &[OsString],
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    use crate::session::child::{self, Ended};
    let ended = child::run(cluster, held, schedule, command, |warning| printer.warn(warning)).await;
    if let Ok(Ended::Survived { processes, lost }) = ended {
        let why = lost.map_or_else(
            || format!("interrupted while {processes} could not be ended"),
            |lost| format!("the lease was lost and {processes} could not be ended: {lost}"),
        );
        return Err(Error::NotEnded {
            message: format!("{why}; the lease was not released, it will expire"),
            hint: Some("end it as the user that it runs as, or as root".into()),
        });
    }
    let writing = Writing::default();
    let released = futures::future::join_all(held.iter().map(|held| held.release(cluster, &writing)));
    let failures: Vec<String> = tokio::select! {
        released = tokio::time::timeout(RELEASE, released) => match released {
            Ok(outcomes) => outcomes.into_iter().filter_map(|outcome| outcome.err().map(|error| error.to_string())).collect(),
            Err(_) => vec!["the server does not answer".to_owned()],
        },
        _ = crate::commands::interrupted() => vec!["interrupted".to_owned()],
    };
    for failure in failures {
        printer.warn(&format!("not released, it will expire: {failure}"));
    }
    match ended? {
        Ended::Code(code) => Ok(ExitCode::Child(code)),
        Ended::NotStarted(code, why) => {
            let program =
                command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
            printer.note(&format!("error: cannot run '{program}': {why}"));
            Ok(ExitCode::Child(code))
        }
        Ended::Lost(why) => {
            Err(Error::LeaseLost { message: format!("the lease was lost and the command was ended: {why}") })
        }
        // It was answered above.
        Ended::Survived { .. } => Ok(ExitCode::NotEnded),
    }
}

#[cfg(not(unix))]
pub async fn under(
    held: &[Held],
    _: Schedule,
    _: &[OsString],
    cluster: &Cluster,
    _: &mut Printer,
) -> Result<ExitCode> {
    for held in held {
        held.release(cluster, &Writing::default()).await?;
    }
    Err(Error::Refused {
        message: "running a command under a lease is not possible on this system yet".into(),
        hint: Some("'maint acquire' and 'maint release' are".into()),
    })
}
