"""The camera, detection, style and speech applications: frames in, answers out, on a page or in files."""
