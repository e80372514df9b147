//! Following objects until enough has been seen of them.

use std::{ops::ControlFlow, time::Duration};

use tokio::time::{Instant, timeout_at};

use crate::{
    client::{
        Cluster, Query, Readable,
        watch::{Follow, Watch, WatchEvent},
    },
    error::Result,
};

/// The server sends a bookmark each minute: a longer silence is a dead connection.
const DEAD: Duration = Duration::from_secs(90);

/// Follows objects until enough has been seen of them or the time is over; whether it has. `saw` receives
/// all that happens, and may bring the end nearer.
pub(super) async fn until<T: Readable>(
    cluster: &Cluster,
    query: &Query,
    mut deadline: Option<Instant>,
    mut saw: impl FnMut(WatchEvent<T>) -> ControlFlow<(), Option<Instant>> + Send,
) -> Result<bool> {
    let mut watch = Watch::of(cluster, (), query.clone(), Follow::quiet(DEAD).going_on());
    loop {
        let ((), event) = match deadline {
            Some(deadline) => match timeout_at(deadline, watch.next()).await {
                Ok(event) => event,
                Err(_) => return Ok(false),
            },
            None => watch.next().await,
        };
        match event {
            WatchEvent::Lost(_) => {}
            WatchEvent::Failed(error) => return Err(error),
            event => match saw(event) {
                ControlFlow::Break(()) => return Ok(true),
                ControlFlow::Continue(nearer) => deadline = deadline.into_iter().chain(nearer).min(),
            },
        }
    }
}
