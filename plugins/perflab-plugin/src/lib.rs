//! A middleware plug-in of perflab in Rust.
//!
//! [`interface`] is `native/middleware/middleware.h`, translated at build time: the header has the contract
//! of each function, which the conformance suite checks. A plug-in implements [`Middleware`] and the three
//! traits of what a participant creates, and exports it:
//!
//! ```ignore
//! perflab_plugin::export_middleware!(Mine);
//! ```
//!
//! `docs/new-middleware.md` is the tutorial, `plugins/smallest` the smallest plug-in. A panic anywhere
//! becomes the error line of the function that it ended, or of the next one; nothing is printed.
//!
//! Shared building blocks: [`Options`]; [`Inbox`] and [`Bells`], a reader's queue and a wait-set over such
//! readers; [`Domain`], matching by DDS rules; [`Neighbours`], discovery on this machine.

mod domain;
mod error;
mod host;
pub mod interface;
mod neighbours;
mod options;
mod plugin;
mod shared_memory;
mod waiting;

pub use domain::{
    from_hex, json_text, participant_of, to_hex, Domain, Doorbell, Endpoint, Identity, Medium, Membership, Party,
};
pub use error::{Error, Result};
pub use host::{wall_ns, Callbacks, Event, Host};
pub use neighbours::{Joining, Neighbours};
pub use options::{require_loopback, Options};
pub use plugin::{
    hint, refused, supported, EndpointSettings, Middleware, Participant, Reader, Settings, Table, WaitSet, Writer,
    LAST_POLICY,
};
pub use shared_memory::{json_list, mapped_shared_memory};
pub use waiting::{collect, locked, monotonic_after, Bell, Bells, HasInbox, Inbox, Places, Waited};
