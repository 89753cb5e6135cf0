//! zenoh: peers connected with each other over the loopback, without a router.
//!
//! Each writer has its own key below its topic, and each reader subscribes to those of its matched writers.
//! Liveliness tokens provide discovery (`meeting.rs`).

mod endpoints;
mod meeting;
mod session;

use std::ffi::CStr;

use perflab_plugin::interface::*;
use perflab_plugin::{
    export_middleware, hint, refused, require_loopback, supported, Bells, Callbacks, Domain, EndpointSettings, Error,
    Host, Middleware, Result, Settings, LAST_POLICY,
};

use endpoints::{Reader, Writer};
use session::{Session, SessionSettings};

const NAME: &str = "zenoh";

struct Zenoh;
export_middleware!(Zenoh);

impl Middleware for Zenoh {
    const NAME: &'static CStr = c"zenoh";
    const SUMMARY: &'static CStr =
        c"Eclipse zenoh: peers over TCP on the loopback, or shared memory for large messages";
    const VERSION: &'static CStr = match CStr::from_bytes_with_nul(concat!(env!("LIBRARY_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version"),
    };
    const CAPABILITIES: perflab_capabilities = perflab_capabilities {
        across_processes: true,
        data_ready_callbacks: true,
        source_timestamps: true,
        reception_timestamps: true,
        reports_endpoints: true,
        related_samples: true,
        loans: true,
        instances: false,
        filters: false,
    };
    const POLICIES: &'static [perflab_policy] = &[
        supported(c"history"),
        supported(c"reliability"),
        refused(c"durability", c"a publisher of zenoh keeps nothing for late readers"),
        supported(c"partition"),
        hint(c"transport_priority"),
        supported(c"user_data"),
        LAST_POLICY,
    ];
    type Participant = Participant;

    fn open(host: Host, settings: &Settings) -> Result<Participant> {
        require_loopback(NAME, settings, "connects peers of one machine")?;
        let session = Session::open(SessionSettings::read(settings)?, settings.domain)?;
        let domain = meeting::join(&session, host, settings.ignore_local_endpoints)?;
        Ok(Participant { domain, session })
    }
}

struct Participant {
    domain: Domain, // must be dropped before the session
    session: Session,
}

impl perflab_plugin::Participant for Participant {
    type Writer = Writer;
    type Reader = Reader;
    type WaitSet = Bells<Reader>;

    fn describe(&self) -> String {
        format!("{{{},{}}}", self.session.described(), self.domain.described())
    }
    fn remote_endpoints(&self, each: &mut dyn FnMut(&perflab_remote_endpoint)) {
        self.domain.remote_endpoints(each);
    }
    fn create_writer(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Writer> {
        Writer::new(&self.domain, &self.session, settings, callbacks)
    }
    fn create_reader(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Reader> {
        Reader::new(&self.domain, &self.session, settings, callbacks)
    }
    fn create_waitset(&self) -> Result<Bells<Reader>> {
        Ok(Bells::default())
    }
}

/// An error of zenoh as one line.
fn failed(what: &str, why: impl std::fmt::Display) -> Error {
    Error::failed(format!("{NAME}: {what}: {why}"))
}
