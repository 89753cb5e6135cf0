#[path = "../version.rs"]
mod version;

fn main() {
    version::tell_version_of("zenoh");
}
