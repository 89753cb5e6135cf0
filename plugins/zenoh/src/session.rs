//! One session per participant, which listens on a loopback port chosen by the kernel.
//!
//! The port is part of an abstract socket name, by which a joining participant finds existing ones: no
//! scouting, no port agreement, and a killed process leaves nothing behind.
//!
//! zenoh leaves its shared memory behind even after an orderly end; it is removed at that point. Leftovers of
//! a killed process are removed when the next session starts.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once};

use perflab_plugin::{json_list, locked, mapped_shared_memory, Joining, Options, Result, Settings};
use zenoh::{Config, Wait};

use crate::{failed, NAME};

#[derive(Clone, Copy)]
pub struct SessionSettings {
    pub shared_memory: bool,
    pub express: bool,
}

impl SessionSettings {
    pub fn read(settings: &Settings) -> Result<SessionSettings> {
        let options = Options::new(NAME, settings, &["express", "shared_memory"])?;
        Ok(SessionSettings {
            shared_memory: options.switch("shared_memory", true)?,
            express: options.switch("express", false)?,
        })
    }
}

/// Received messages by path, according to their buffers.
#[derive(Default)]
pub struct Counts {
    pub in_shared_memory: AtomicU64,
    pub copied: AtomicU64,
    pub foreign: AtomicU64, // without the header of a perflab writer
}

pub struct Session {
    pub zenoh: zenoh::Session,
    pub settings: SessionSettings,
    pub counts: Arc<Counts>,
    prefix: String,
    port: u16,
    _name: UnixListener,
}

impl Session {
    pub fn open(settings: SessionSettings, domain: u32) -> Result<Session> {
        if settings.shared_memory {
            zenoh::shm::cleanup_orphaned_shm_segments();
        }
        let joining = Joining::begin(NAME, domain)?;
        let others: Vec<String> = joining.others()?.iter().map(|port| format!("\"tcp/127.0.0.1:{port}\"")).collect();
        let mut tries = 0;
        let (zenoh, port) = loop {
            let port = free_port()?;
            let configuration = configuration(settings, port, &others)?;
            match noting_shared_memory(|| zenoh::open(configuration).wait()) {
                Ok(session) => break (session, port),
                Err(why) if tries == 10 => return Err(failed("no session", why)),
                Err(_) => tries += 1, // another process got the port
            }
        };
        let name = joining.join(&port.to_string())?;
        Ok(Session { zenoh, settings, counts: Arc::default(), prefix: format!("perflab/{domain}"), port, _name: name })
    }

    /// Prefix of all keys of the domain.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn described(&self) -> String {
        format!(
            "\"transport\":\"tcp/127.0.0.1:{}\",\"shared_memory\":{},\"express\":{},\"received\":{{\
             \"in_shared_memory\":{},\"copied\":{},\"foreign\":{}}},\"shared_memory_files\":{}",
            self.port,
            self.settings.shared_memory,
            self.settings.express,
            self.counts.in_shared_memory.load(Ordering::Relaxed),
            self.counts.copied.load(Ordering::Relaxed),
            self.counts.foreign.load(Ordering::Relaxed),
            json_list(locked(&OWN).iter()),
        )
    }
}

/// Shared memory files created by this process.
static OWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Records the files that `making` creates. Files of others are mapped when their first message comes, which
/// does not happen meanwhile.
pub fn noting_shared_memory<T>(making: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    // SAFETY: the library stays in memory until the process ends.
    ONCE.call_once(|| unsafe {
        libc::atexit(remove_shared_memory);
    });
    let before = mapped_shared_memory();
    let made = making();
    let new = mapped_shared_memory().into_iter().filter(|name| name.ends_with(".zenoh") && !before.contains(name));
    locked(&OWN).extend(new);
    made
}

extern "C" fn remove_shared_memory() {
    for name in std::mem::take(&mut *locked(&OWN)) {
        let _ = std::fs::remove_file(format!("/dev/shm/{name}"));
    }
}

fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|why| failed("no port is left", why))
}

fn configuration(settings: SessionSettings, port: u16, others: &[String]) -> Result<Config> {
    let mut config = Config::default();
    let mut set =
        |key: &str, value: &str| config.insert_json5(key, value).map_err(|why| failed(key, format!("{why:?}")));
    set("mode", "\"peer\"")?;
    set("listen/endpoints", &format!("[\"tcp/127.0.0.1:{port}\"]"))?;
    set("connect/endpoints", &format!("[{}]", others.join(",")))?;
    set("connect/timeout_ms", "0")?;
    set("connect/exit_on_failure", "false")?;
    set("scouting/multicast/enabled", "false")?;
    set("scouting/gossip/enabled", "false")?;
    set("transport/shared_memory/enabled", if settings.shared_memory { "true" } else { "false" })?;
    set("transport/shared_memory/mode", "\"init\"")?; // at once rather than with the first message
    Ok(config)
}
