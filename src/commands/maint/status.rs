use super::{row::MaintenanceRow, targets, who};
use crate::{cli::Status, error::Result, exit::ExitCode, output::Printer};
use kube_leases::client::Cluster;

pub async fn run(args: &Status, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let (who, targets) =
        tokio::try_join!(who(args.identity.holder(), true, cluster), targets(&args.nodes, cluster))?;
    let now = cluster.server_time();
    let rows: Vec<_> = targets.into_iter().map(|target| MaintenanceRow::new(target, &who, now)).collect();
    match &rows[..] {
        [one] => printer.single(one, args.output, !args.no_headers, now)?,
        all => printer.listing(all, args.output, !args.no_headers, now)?,
    }
    Ok(ExitCode::of(rows.iter().all(|row| row.state().may_be_touched())))
}
