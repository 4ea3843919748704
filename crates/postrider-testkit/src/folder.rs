//! A folder that goes away.

use std::path::{Path, PathBuf};

/// An empty folder. It is removed when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one, among the temporary files of the machine.
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// A new one within another.
    pub fn within(parent: &Path) -> Self {
        let path = parent.join(crate::unique("postrider-"));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it, and returns its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
