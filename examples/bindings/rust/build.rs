// SPDX-License-Identifier: Apache-2.0
//! Finds libgrowpage.so: in GROWPAGE_LIB_DIR, else by pkg-config.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=GROWPAGE_LIB_DIR");
    let folder = std::env::var("GROWPAGE_LIB_DIR").unwrap_or_else(|_| {
        let output = Command::new("pkg-config")
            .args(["--variable=libdir", "growpage-c"])
            .output()
            .expect("set GROWPAGE_LIB_DIR, or install pkg-config and growpage");
        assert!(
            output.status.success(),
            "pkg-config does not know growpage-c: set GROWPAGE_LIB_DIR to the folder of libgrowpage.so"
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    println!("cargo:rustc-link-search=native={}", folder);
    println!("cargo:rustc-link-lib=dylib=growpage");
    // So that tests and examples start; engines that link this crate set their own.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder);
}
