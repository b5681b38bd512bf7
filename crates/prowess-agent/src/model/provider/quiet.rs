//! Nobody hears what the library below says: it logs bodies, and bodies may hold keys.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tracing::Dispatch;
use tracing::dispatcher::with_default;

/// A future or a stream that logs nothing.
pub(super) struct Quiet<T>(pub(super) T);

impl<F: Future + Unpin> Future for Quiet<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        with_default(&Dispatch::none(), || Pin::new(&mut self.0).poll(context))
    }
}

impl<S: Stream + Unpin> Stream for Quiet<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        with_default(&Dispatch::none(), || Pin::new(&mut self.0).poll_next(context))
    }
}
