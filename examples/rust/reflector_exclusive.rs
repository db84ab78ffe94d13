//! L2 reflector without the daemon: opens devices itself, one thread for each queue, and sends every packet back by
//! the port where it came in, MAC addresses swapped.
//!
//! usage: reflector_exclusive THREADS DEVICE...     device strings such as afpacket:eth1

use std::thread;
use std::time::Duration;

use millrace_exclusive::{Devices, Options, Queue, register_thread};

fn reflect(mut queue: Queue) {
    // Buffers from a cache of this thread's own; without one it is slower.
    let _cache = register_thread();
    let mut packets = Vec::with_capacity(64);
    loop {
        if queue.receive(&mut packets, 64) == 0 {
            // A function that owns its core would spin instead.
            thread::sleep(Duration::from_micros(50));
            continue;
        }
        for packet in &mut packets {
            // Destination and source, six bytes each.
            if let Some(addresses) = queue.bytes_mut(packet).get_mut(..12) {
                addresses.rotate_left(6);
            }
        }
        queue.send_burst(&mut packets);
        // What found no room is dropped, as a network card would.
        queue.release_burst(&mut packets);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let threads = words.next().and_then(|word| word.parse().ok());
    let threads = threads.ok_or("usage: reflector_exclusive THREADS DEVICE...")?;
    let devices: Vec<String> = words.collect();
    let named: Vec<_> = devices.iter().map(|device| (device.as_str(), device.as_str())).collect();
    let opened = Devices::open(&named, threads, &Options::default())?;
    println!("reflecting");
    let threads: Vec<_> =
        opened.queues.into_iter().map(|queue| thread::spawn(|| reflect(queue))).collect();
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("reflector_exclusive: {error}");
        std::process::exit(1);
    }
}
