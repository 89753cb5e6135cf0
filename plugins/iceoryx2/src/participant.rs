//! A participant: a node of iceoryx2, and its neighbours.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use perflab_plugin::interface::*;
use perflab_plugin::{
    json_list, locked, mapped_shared_memory, Callbacks, Domain, EndpointSettings, Host, Neighbours, Result, Settings,
};

use crate::data::{DataThread, WaitSet};
use crate::reader::Reader;
use crate::service::{Limits, Services};
use crate::writer::Writer;
use crate::NAME;

pub struct Participant {
    domain: Domain, // must be dropped before what it uses
    thread: Mutex<Option<Arc<DataThread>>>,
    services: Arc<Services>,
}

impl Participant {
    pub fn open(host: Host, settings: &Settings) -> Result<Participant> {
        let services = Arc::new(Services::open(Limits::read(settings)?, settings.domain)?);
        let of_the_dead = services.clone();
        let domain = Domain::join(NAME, host, settings.ignore_local_endpoints, |own, bell| {
            let on_lost = move || of_the_dead.forget_the_dead();
            Ok(Box::new(Neighbours::join(NAME, settings.domain, own, bell, on_lost)?))
        })?;
        Ok(Participant { domain, thread: Mutex::default(), services })
    }

    // Created when the first reader with `on_data` needs it.
    fn data_thread(&self) -> Result<Arc<DataThread>> {
        let mut place = locked(&self.thread);
        if place.is_none() {
            *place = Some(Arc::new(DataThread::new()?));
        }
        Ok(place.clone().expect("made above"))
    }
}

impl perflab_plugin::Participant for Participant {
    type Writer = Writer;
    type Reader = Reader;
    type WaitSet = WaitSet;

    fn describe(&self) -> String {
        let (counts, limits) = (&self.services.counts, &self.services.limits);
        format!(
            "{{\"transport\":\"shared memory\",\"buffer\":{},\"max_blocking_time_ns\":{},\"sent\":{{\"loaned\":{},\
             \"copied\":{},\"copied_loans\":{}}},\"shared_memory_files\":{},{}}}",
            limits.buffer,
            limits.max_blocking_ns,
            counts.loaned.load(Ordering::Relaxed),
            counts.copied.load(Ordering::Relaxed),
            counts.copied_loans.load(Ordering::Relaxed),
            // Files of services, which belong to this domain only.
            json_list(
                mapped_shared_memory().iter().filter(|name| name.starts_with("perflab_") && !name.contains("_mgmt"))
            ),
            self.domain.described()
        )
    }
    fn remote_endpoints(&self, each: &mut dyn FnMut(&perflab_remote_endpoint)) {
        self.domain.remote_endpoints(each);
    }
    fn create_writer(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Writer> {
        Writer::new(&self.domain, &self.services, settings, callbacks)
    }
    fn create_reader(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Reader> {
        Reader::new(&self.domain, &self.services, || self.data_thread(), settings, callbacks)
    }
    fn create_waitset(&self) -> Result<WaitSet> {
        WaitSet::new()
    }
}
