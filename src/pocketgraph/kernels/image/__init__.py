"""Pictures: files, resizing, crops, colors, and the boxes of detectors."""
