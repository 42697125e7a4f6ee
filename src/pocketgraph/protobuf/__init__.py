"""Messages of protobuf, with no protobuf library."""
