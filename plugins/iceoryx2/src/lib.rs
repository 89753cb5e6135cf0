//! iceoryx2: messages in shared memory, passed without copies.
//!
//! Each writer has its own publish-subscribe service, to which a reader subscribes when the two match; each
//! reader has an event service, by which writers wake it. iceoryx2 does not report participants;
//! [`Neighbours`] does.

mod data;
mod participant;
mod reader;
mod service;
mod writer;

use std::ffi::CStr;

use perflab_plugin::interface::*;
use perflab_plugin::{
    export_middleware, refused, require_loopback, supported, Error, Host, Middleware, Result, Settings, LAST_POLICY,
};

use participant::Participant;

const NAME: &str = "iceoryx2";

struct Iceoryx2;
export_middleware!(Iceoryx2);

impl Middleware for Iceoryx2 {
    const NAME: &'static CStr = c"iceoryx2";
    const SUMMARY: &'static CStr = c"Eclipse iceoryx2: shared memory between processes of one machine, without a copy";
    const VERSION: &'static CStr = match CStr::from_bytes_with_nul(concat!(env!("LIBRARY_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version"),
    };
    const CAPABILITIES: perflab_capabilities = perflab_capabilities {
        across_processes: true,
        data_ready_callbacks: true,
        source_timestamps: true,
        reception_timestamps: false, // no receive thread
        reports_endpoints: true,
        related_samples: true,
        loans: true,
        instances: false,
        filters: false,
    };
    const POLICIES: &'static [perflab_policy] = &[
        supported(c"history"),
        supported(c"reliability"),
        supported(c"durability"),
        refused(c"durability=transient", c"there is no durability service"),
        refused(c"durability=persistent", c"there is no durability service"),
        supported(c"partition"),
        supported(c"user_data"),
        LAST_POLICY,
    ];
    type Participant = Participant;

    fn open(host: Host, settings: &Settings) -> Result<Participant> {
        require_loopback(NAME, settings, "connects processes of one machine")?;
        Participant::open(host, settings)
    }
}

/// An error of iceoryx2 as one line.
fn failed(what: &str, why: impl std::fmt::Display) -> Error {
    Error::failed(format!("{NAME}: {what}: {why}"))
}
