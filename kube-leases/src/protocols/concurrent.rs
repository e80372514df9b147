//! Doing the same for several leases at once.

use std::vec;

use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self, BufferUnordered, Buffered, Iter},
};

/// How many leases are read or written at once.
const AT_ONCE: usize = 32;

type Futures<'a, R> = Iter<vec::IntoIter<BoxFuture<'a, R>>>;

/// Does this for each of them, some at once. The outcomes come as they are known.
pub(super) fn for_each<'a, T, R, F: Future<Output = R> + Send + 'a>(
    items: impl Iterator<Item = T>,
    work: impl FnMut(T) -> F,
) -> BufferUnordered<Futures<'a, R>> {
    futures(items, work).buffer_unordered(AT_ONCE)
}

/// As [`for_each`]; the outcomes come in the order of the items.
pub(super) fn for_each_in_order<'a, T, R, F: Future<Output = R> + Send + 'a>(
    items: impl Iterator<Item = T>,
    work: impl FnMut(T) -> F,
) -> Buffered<Futures<'a, R>> {
    futures(items, work).buffered(AT_ONCE)
}

/// Each begins when it is first polled. They are boxed, for the compiler does not see that a future that
/// holds closures over references is `Send`.
fn futures<'a, T, R, F: Future<Output = R> + Send + 'a>(
    items: impl Iterator<Item = T>,
    mut work: impl FnMut(T) -> F,
) -> Futures<'a, R> {
    stream::iter(items.map(|item| work(item).boxed()).collect::<Vec<_>>())
}
