//! The nodes of the forwarder and the state machines of its slow path.
