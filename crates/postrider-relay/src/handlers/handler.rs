//! Handlers: async functions, closures and structs, for one event or for several.

use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use postrider_core::OutboxSource;

use crate::{Context, Failure, Received, Tx};

/// What a handler may take after its event, in any order: a [`Context`], a [`Tx`].
#[diagnostic::on_unimplemented(
    message = "a handler on this outbox can't take `{Self}`",
    label = "neither a `Context` nor a `Tx` of this outbox",
    note = "after its event, a handler may take a `Context` and a `Tx`; the `Tx` must be that of its relay's store, such as `postrider::postgres::Tx`"
)]
pub trait Argument<S: OutboxSource>: Send + Sized + 'static {
    #[doc(hidden)]
    const TRANSACTIONAL: bool;

    #[doc(hidden)]
    fn take(context: &Context, transaction: &mut Option<Tx<S>>) -> Option<Self>;
}

impl<S: OutboxSource> Argument<S> for Context {
    const TRANSACTIONAL: bool = false;

    fn take(context: &Context, _: &mut Option<Tx<S>>) -> Option<Self> {
        Some(context.clone())
    }
}

impl<S: OutboxSource> Argument<S> for Tx<S> {
    const TRANSACTIONAL: bool = true;

    fn take(_: &Context, transaction: &mut Option<Self>) -> Option<Self> {
        transaction.take()
    }
}

/// What a handler of one event may return: nothing, or a `Result` with any error.
#[diagnostic::on_unimplemented(
    message = "a handler can't return `{Self}`",
    label = "not `Result<(), E>`",
    note = "it returns nothing, or `Result<(), E>` where `E` is a `Failure` or an error"
)]
pub trait HandlerResult: Send {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), Failure>;
}

impl HandlerResult for () {
    fn into_result(self) -> Result<(), Failure> {
        Ok(())
    }
}

impl<E: Into<Failure> + Send> HandlerResult for Result<(), E> {
    fn into_result(self) -> Result<(), Failure> {
        self.map_err(Into::into)
    }
}

/// What a handler of several events may return: one result for all of them, or one for each, in order.
///
/// After the first failure of a key, the results of later events of that key are ignored (under strict order, those of all later
/// events): they come again, in order, once the failed event is resolved.
pub trait HandlerResults: Send {
    #[doc(hidden)]
    fn into_results(self) -> Result<Option<Vec<Result<(), Failure>>>, Failure>;
}

impl<E: Into<Failure> + Send> HandlerResults for Result<(), E> {
    fn into_results(self) -> Result<Option<Vec<Result<(), Failure>>>, Failure> {
        self.map(|()| None).map_err(Into::into)
    }
}

impl<E: Into<Failure> + Send> HandlerResults for Vec<Result<(), E>> {
    fn into_results(self) -> Result<Option<Vec<Result<(), Failure>>>, Failure> {
        Ok(Some(self.into_iter().map(|each| each.map_err(Into::into)).collect()))
    }
}

impl<E: Into<Failure> + Send, F: Into<Failure> + Send> HandlerResults for Result<Vec<Result<(), E>>, F> {
    fn into_results(self) -> Result<Option<Vec<Result<(), Failure>>>, Failure> {
        match self {
            Ok(each) => each.into_results(),
            Err(all) => Err(all.into()),
        }
    }
}

/// A struct that handles one type of event.
///
/// ```
/// use postrider::{Context, Event, Failure, Handle, Received, Relay, testing::Outbox};
///
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct OrderPaid { order: i64 }
/// struct Mailer {
///     sender: String,
/// }
///
/// impl Handle<OrderPaid> for Mailer {
///     async fn handle(&self, event: Received<OrderPaid>, _: Context) -> Result<(), Failure> {
///         println!("{}: order {} is paid", self.sender, event.order);
///         Ok(())
///     }
/// }
///
/// let mailer = Mailer { sender: "shop@example.org".into() };
/// let relay = Relay::new(&Outbox::new()).subscribe("mail", |s| s.on(mailer));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle `{T}`",
    label = "no `Handle<{T}>`",
    note = "implement `postrider::Handle<{T}>` for it"
)]
pub trait Handle<T>: Send + Sync + 'static {
    /// Handles an event. An error from `?` is retried.
    fn handle(
        &self,
        event: Received<T>,
        context: Context,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A struct that handles one type of event in a transaction.
///
/// ```
/// use postrider::{Context, Event, Failure, HandleWithin, Received, Relay, Tx, testing::Outbox};
///
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct OrderPaid { order: i64 }
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct InvoiceIssued { order: i64 }
/// struct Invoices;
///
/// impl HandleWithin<Outbox, OrderPaid> for Invoices {
///     async fn handle(&self, event: Received<OrderPaid>, mut tx: Tx<Outbox>, _: Context) -> Result<(), Failure> {
///         tx.record(&InvoiceIssued { order: event.order }).await?;
///         Ok(())
///     }
/// }
///
/// let relay = Relay::new(&Outbox::new()).subscribe("invoices", |s| s.on(Invoices));
/// ```
pub trait HandleWithin<S: OutboxSource, T>: Send + Sync + 'static {
    /// Handles an event. The transaction commits when it returns `Ok`.
    fn handle(
        &self,
        event: Received<T>,
        tx: Tx<S>,
        context: Context,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A handler for an event type. Implemented for async functions and closures that take a [`Received`] (or a `Vec` of them) and any
/// [`Argument`], and for every struct that implements [`Handle`] or [`HandleWithin`]. `Shape` is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not a handler",
    note = "a handler is an async function or closure: `async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure>`",
    note = "it takes a `Received<T>` or a `Vec<Received<T>>` first, then optionally a `Context` and a `Tx` of the store that its relay is on, and \
            returns `Result<(), E>` where `E` is a `Failure` or an error; its future must be `Send`",
    note = "or it is a struct that implements `postrider::Handle<T>` or `postrider::HandleWithin<S, T>`"
)]
pub trait Handler<S: OutboxSource, Shape>: Send + Sync + Sized + 'static {
    /// The type that the payload is decoded to. The bound is checked where the handler is registered, so that the compiler names
    /// the type.
    type Payload: Send + 'static;
    #[doc(hidden)]
    const TRANSACTIONAL: bool;
    #[doc(hidden)]
    const SEVERAL: bool;

    #[doc(hidden)]
    fn call(
        self: Arc<Self>,
        events: Vec<Received<Self::Payload>>,
        context: Context,
        transaction: Option<Tx<S>>,
    ) -> Pin<Box<dyn Future<Output = CallResult> + Send>>;
}

/// The result of a call: a failure of all events, or one result per event, or success of all.
pub type CallResult = Result<Option<Vec<Result<(), Failure>>>, Failure>;

#[doc(hidden)]
pub struct One<T>(PhantomData<T>);
#[doc(hidden)]
pub struct Several<T>(PhantomData<T>);
#[doc(hidden)]
pub struct Struct<T>(PhantomData<T>);
#[doc(hidden)]
pub struct StructWithin<T>(PhantomData<T>);

/// What a call came to, if it did not panic.
fn caught(result: std::thread::Result<CallResult>) -> CallResult {
    result.unwrap_or_else(|panic| Err(panicked(panic)))
}

fn without_transaction() -> Failure {
    Failure::retry("the handler takes a transaction, and none is available here").code("transaction")
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    let message = match text {
        Some(text) => format!("the handler panicked: {text}"),
        None => "the handler panicked".to_owned(),
    };
    Failure::retry(message).code("panic")
}

macro_rules! functions {
    ($($argument:ident),*) => {
        impl<S, F, Fut, T, R, $($argument),*> Handler<S, (One<T>, $($argument,)*)> for F
        where
            S: OutboxSource,
            F: Fn(Received<T>, $($argument),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            T: Send + 'static,
            R: HandlerResult,
            $($argument: Argument<S>,)*
        {
            type Payload = T;
            const TRANSACTIONAL: bool = false $(|| $argument::TRANSACTIONAL)*;
            const SEVERAL: bool = false;

            #[allow(unused_variables, unused_mut, non_snake_case)]
            fn call(
                self: Arc<Self>,
                mut events: Vec<Received<T>>,
                context: Context,
                mut transaction: Option<Tx<S>>,
            ) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
                let Some(event) = events.pop() else { return Box::pin(async { Ok(None) }) };
                $(let Some($argument) = $argument::take(&context, &mut transaction) else {
                    return Box::pin(async { Err(without_transaction()) });
                };)*
                let future = async move { (*self)(event, $($argument),*).await.into_result().map(|()| None) };
                Box::pin(AssertUnwindSafe(future).catch_unwind().map(caught))
            }
        }

        impl<S, F, Fut, T, R, $($argument),*> Handler<S, (Several<T>, $($argument,)*)> for F
        where
            S: OutboxSource,
            F: Fn(Vec<Received<T>>, $($argument),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            T: Send + 'static,
            R: HandlerResults,
            $($argument: Argument<S>,)*
        {
            type Payload = T;
            const TRANSACTIONAL: bool = false $(|| $argument::TRANSACTIONAL)*;
            const SEVERAL: bool = true;

            #[allow(unused_variables, unused_mut, non_snake_case)]
            fn call(
                self: Arc<Self>,
                events: Vec<Received<T>>,
                context: Context,
                mut transaction: Option<Tx<S>>,
            ) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
                $(let Some($argument) = $argument::take(&context, &mut transaction) else {
                    return Box::pin(async { Err(without_transaction()) });
                };)*
                let future = async move { (*self)(events, $($argument),*).await.into_results() };
                Box::pin(AssertUnwindSafe(future).catch_unwind().map(caught))
            }
        }
    };
}

functions!();
functions!(First);
functions!(First, Second);

impl<S, H, T> Handler<S, Struct<T>> for H
where
    S: OutboxSource,
    H: Handle<T>,
    T: Send + 'static,
{
    type Payload = T;
    const TRANSACTIONAL: bool = false;
    const SEVERAL: bool = false;

    fn call(
        self: Arc<Self>,
        mut events: Vec<Received<T>>,
        context: Context,
        _: Option<Tx<S>>,
    ) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
        let Some(event) = events.pop() else { return Box::pin(async { Ok(None) }) };
        let future = async move { self.handle(event, context).await.map(|()| None) };
        Box::pin(AssertUnwindSafe(future).catch_unwind().map(caught))
    }
}

impl<S, H, T> Handler<S, StructWithin<T>> for H
where
    S: OutboxSource,
    H: HandleWithin<S, T>,
    T: Send + 'static,
{
    type Payload = T;
    const TRANSACTIONAL: bool = true;
    const SEVERAL: bool = false;

    fn call(
        self: Arc<Self>,
        mut events: Vec<Received<T>>,
        context: Context,
        transaction: Option<Tx<S>>,
    ) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
        let Some(event) = events.pop() else { return Box::pin(async { Ok(None) }) };
        let Some(tx) = transaction else { return Box::pin(async { Err(without_transaction()) }) };
        let future = async move { self.handle(event, tx, context).await.map(|()| None) };
        Box::pin(AssertUnwindSafe(future).catch_unwind().map(caught))
    }
}
