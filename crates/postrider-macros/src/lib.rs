//! The derive of Postrider. Applications get it from the crate `postrider`, under the name of the trait.

mod attributes;
mod expand;

use proc_macro::TokenStream;

/// Maps a struct to an event: implements the trait `Event` by the attributes `#[event(…)]`.
///
/// | on the struct | what it sets | default |
/// |---|---|---|
/// | `aggregate = "Order"` | the type of the aggregate it happened to | required |
/// | `id = order` | the field with the aggregate's id; in a tuple struct its index, `id = 0` | required, here or on a field |
/// | `key = account` | the field that it is ordered by | the aggregate |
/// | `name = "OrderPaid"` | the event type | the name of the struct |
/// | `version = 2` | the version of the payload's schema | 1 |
/// | `stream = "orders"` | the stream it is recorded in | `events` |
/// | `sequenced` | gives each event a number without gaps within its ordering key | no number |
/// | `max_attempts = 5` | maximum number of attempts, including the first | the subscription's |
/// | `crate = "postrider_core"` | where the trait is, for a crate that does not depend on `postrider` | `::postrider` |
///
/// Instead of being named on the struct, a field may be marked with `#[event(id)]` or `#[event(key)]`, or with
/// both. An id or key becomes text by `ToString`.
///
/// ```
/// # extern crate postrider_core as postrider;
/// # use postrider_macros::Event;
/// use postrider::Event;
/// use serde::Serialize;
///
/// #[derive(Serialize, Event)]
/// #[event(aggregate = "Order", stream = "orders", version = 2)]
/// struct OrderPaid {
///     #[event(id)]
///     order: i64,
///     #[event(key)]
///     account: String,
/// }
///
/// let event = OrderPaid { order: 7, account: "A-1".into() };
/// assert_eq!(OrderPaid::NAME, "OrderPaid");
/// assert_eq!(event.aggregate_id(), "7");
/// assert_eq!(event.ordering_key().as_deref(), Some("A-1"));
/// ```
///
/// A struct with type parameters is an event wherever it is `::serde::Serialize` and its id and key are
/// `ToString`; such a struct needs the crate `serde` under that name.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::event(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
