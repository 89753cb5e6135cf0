//! The iceoryx2 services behind writers and readers, created identically by whichever side comes first.
//!
//! In one kind of service a full reader loses its oldest message, in the other the writer waits for it. So a
//! writer has up to two: for keep_last readers, and for reliable keep_all readers.

use std::sync::atomic::AtomicU64;

use iceoryx2::config::Config;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::{BackpressureAction, BackpressureInfo};
use iceoryx2::prelude::*;
use perflab_plugin::interface::*;
use perflab_plugin::{to_hex, Endpoint, Identity, Options, Result, Settings};

use crate::{failed, NAME};

pub type Service = ipc_threadsafe::Service;

/// Header of each message.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, ZeroCopySend)]
pub struct Head {
    pub sequence: i64,
    pub source_ns: i64,
    pub published_ns: i64, // monotonic; orders messages of several writers
    pub related_sequence: i64,
    pub related_writer: [u8; 16],
}

/// The kind of a service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    KeepsLast = 0,
    KeepsAll = 1,
}

impl Kind {
    pub fn of_reader(qos: &perflab_qos) -> Kind {
        if qos.history == PERFLAB_KEEP_ALL && qos.reliability == PERFLAB_RELIABLE {
            Kind::KeepsAll
        } else {
            Kind::KeepsLast
        }
    }
}

/// Both kinds, by `Kind as usize`.
pub const KINDS: [Kind; 2] = [Kind::KeepsLast, Kind::KeepsAll];

const MOST_READERS: usize = 32; // per writer
const MOST_NODES: usize = 128;
// Taken and not yet returned messages, besides those read ahead.
const HELD_BY_THE_HOST: usize = 64;
/// Loans per writer.
pub const MOST_LOANS: usize = 64;
// Initial size for a writer whose messages have no fixed size.
const FIRST_BYTES: usize = 4096;

#[derive(Clone, Copy)]
pub struct Limits {
    pub buffer: usize, // messages waiting for a reader
    pub held: usize,   // messages received by a reader and not yet returned
    pub max_blocking_ns: i64,
}

impl Limits {
    pub fn read(settings: &Settings) -> Result<Limits> {
        let options = Options::new(NAME, settings, &["buffer", "max_blocking_time"])?;
        let buffer = options.number("buffer", 16, 65536, 4096)?;
        Ok(Limits {
            buffer,
            held: (buffer / 4).max(16),
            max_blocking_ns: options.duration_ns("max_blocking_time", 1_000_000_000)?,
        })
    }
}

/// The services of a participant.
pub struct Services {
    pub node: Node<Service>,
    pub limits: Limits,
    pub counts: Counts,
    prefix: String,
}

#[derive(Default)]
pub struct Counts {
    pub loaned: AtomicU64,
    pub copied: AtomicU64,
    // Loans that were copied nevertheless, for readers of the writer's other service.
    pub copied_loans: AtomicU64,
}

pub type Messages = iceoryx2::service::port_factory::publish_subscribe::PortFactory<Service, [u8], Head>;

impl Services {
    pub fn open(limits: Limits, domain: u32) -> Result<Services> {
        set_log_level(LogLevel::Fatal); // failures are reported by results
        let mut config = Config::default();
        // In memory, because iceoryx2 syncs each of its small files to disk. SAFETY: reads the user id.
        let root = format!("/dev/shm/perflab-iceoryx2-{}", unsafe { libc::getuid() });
        let root = Path::new(root.as_bytes()).map_err(|why| failed("no folder", format!("{why:?}")))?;
        config.global.set_root_path(&root);
        config.global.prefix = FileName::new(b"perflab_").map_err(|why| failed("no prefix", format!("{why:?}")))?;
        // Also of earlier runs: leftovers of a killed process are removed when the next one starts.
        config.global.node.cleanup_dead_nodes_on_creation = true;
        config.global.node.cleanup_dead_nodes_on_destruction = true;
        config.global.service.cleanup_dead_nodes_on_open = false;
        let node = NodeBuilder::new()
            .config(&config)
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<Service>()
            .map_err(|why| failed("no node", why))?;
        Ok(Services { node, limits, counts: Counts::default(), prefix: format!("perflab/{domain}") })
    }

    pub fn forget_the_dead(&self) {
        self.node.try_cleanup_dead_nodes();
    }

    fn name(&self, of: &Identity, what: &str) -> Result<ServiceName> {
        let name = format!("{}/{}/{what}", self.prefix, to_hex(of));
        ServiceName::new(&name).map_err(|why| failed("no service", why))
    }

    /// The service of a writer, as the writer announced itself.
    pub fn messages(&self, writer: &Identity, offered: &Endpoint, kind: Kind) -> Result<Messages> {
        let name = self.name(writer, if kind == Kind::KeepsAll { "all" } else { "last" })?;
        self.node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .user_header::<Head>()
            .payload_alignment(Alignment::new(8).expect("a power of two"))
            .enable_safe_overflow(kind == Kind::KeepsLast)
            .history_size(history_of(&offered.qos))
            .subscriber_max_buffer_size(self.limits.buffer)
            .subscriber_max_borrowed_samples(self.limits.held + HELD_BY_THE_HOST)
            .max_publishers(1)
            .max_subscribers(MOST_READERS)
            .max_nodes(MOST_NODES)
            .open_or_create()
            .map_err(|why| failed("no service for messages", why))
    }

    pub fn publisher(&self, messages: &Messages, offered: &Endpoint) -> Result<Publisher<Service, [u8], Head>> {
        let fixed_size = offered.fixed_size as usize;
        let limits = self.limits;
        let waits = offered.qos.reliability == PERFLAB_RELIABLE;
        // Each message is stored once, regardless of the number of readers: room for the two buffers that may
        // differ most, and for messages taken by readers.
        let room =
            2 * (limits.buffer + limits.held) + HELD_BY_THE_HOST * MOST_READERS + MOST_LOANS + history_of(&offered.qos);
        messages
            .publisher_builder()
            .initial_max_slice_len(if fixed_size > 0 { fixed_size } else { FIRST_BYTES })
            .allocation_strategy(if fixed_size > 0 {
                AllocationStrategy::Static
            } else {
                AllocationStrategy::PowerOfTwo
            })
            .max_loaned_samples(MOST_LOANS)
            .override_sample_preallocation(move |most| room.min(most))
            .set_backpressure_handler(move |full: &BackpressureInfo| {
                if !waits {
                    BackpressureAction::DiscardData
                } else if full.elapsed_time.as_nanos() >= limits.max_blocking_ns as u128 {
                    BackpressureAction::DiscardDataAndFail
                } else {
                    BackpressureAction::Retry
                }
            })
            .create()
            .map_err(|why| failed("no publisher", why))
    }

    pub fn subscriber(
        &self,
        messages: &Messages,
        offered: &Endpoint,
        requested: &perflab_qos,
    ) -> Result<Subscriber<Service, [u8], Head>> {
        let wants_history = requested.durability == PERFLAB_TRANSIENT_LOCAL;
        messages
            .subscriber_builder()
            .buffer_size(self.depth_of(requested))
            .history_request(if wants_history { history_of(&offered.qos) } else { 0 })
            .create()
            .map_err(|why| failed("no subscriber", why))
    }

    pub fn depth_of(&self, requested: &perflab_qos) -> usize {
        match requested.history {
            PERFLAB_KEEP_ALL => self.limits.buffer,
            _ => (requested.depth as usize).min(self.limits.held),
        }
    }

    fn events(&self, reader: &Identity) -> Result<iceoryx2::service::port_factory::event::PortFactory<Service>> {
        self.node
            .service_builder(&self.name(reader, "data")?)
            .event()
            .max_listeners(1)
            .max_notifiers(256)
            .max_nodes(MOST_NODES)
            .event_id_max_value(1)
            .disable_deadline()
            .open_or_create()
            .map_err(|why| failed("no service for events", why))
    }

    pub fn listener(&self, reader: &Identity) -> Result<Listener<Service>> {
        self.events(reader)?.listener_builder().create().map_err(|why| failed("no listener", why))
    }

    pub fn notifier(&self, reader: &Identity) -> Result<Notifier<Service>> {
        self.events(reader)?.notifier_builder().create().map_err(|why| failed("no notifier", why))
    }
}

// The history that a writer keeps for late joiners.
fn history_of(offered: &perflab_qos) -> usize {
    if offered.durability == PERFLAB_TRANSIENT_LOCAL {
        offered.depth as usize
    } else {
        0
    }
}
