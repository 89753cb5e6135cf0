// For build scripts of plug-ins: the version of a library in the lock file.
pub fn tell_version_of(library: &str) {
    let lock = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(&lock).expect("Cargo.lock");
    let mut lines = text.lines().skip_while(|line| *line != format!("name = \"{library}\""));
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    println!("cargo:rustc-env=LIBRARY_VERSION={}", version.expect("a version in Cargo.lock"));
}
