//! L2 reflector: sends every packet back by the port where it came in, MAC addresses swapped.
//!
//! usage: reflector [PORT...]     names of ports; none: all
//!        reflector PORT:QUEUE    that receive queue alone, without copies: one that the port keeps for clients

use millrace::{Client, Error, Options, PortQueue};

fn own_queue(arguments: &[String]) -> Option<PortQueue> {
    let [argument] = arguments else { return None };
    let (port, queue) = argument.rsplit_once(':')?;
    Some(PortQueue { port: port.into(), queue: queue.parse().ok()? })
}

fn reflect(ports: Vec<String>) -> Result<(), Error> {
    let client = Client::attach(None, "reflector")?;
    let options = match own_queue(&ports) {
        Some(queue) => Options { queue: Some(queue), ..Options::default() },
        None => Options { ports, ..Options::default() },
    };
    let mut queues = client.open(&options)?;
    println!("reflecting");
    let mut packets = Vec::with_capacity(64);
    let Some(channel) = queues.channels.first_mut() else { return Ok(()) };
    loop {
        if channel.receive(&mut packets, 64)? == 0 {
            channel.wait(None)?;
            continue;
        }
        for packet in &mut packets {
            // Destination and source, six bytes each.
            if let Some(addresses) = channel.bytes_mut(packet).get_mut(..12) {
                addresses.rotate_left(6);
            }
        }
        channel.send_burst(&mut packets)?;
        // What found no room is dropped, as a network card would.
        channel.release_burst(&mut packets);
    }
}

fn main() {
    if let Err(error) = reflect(std::env::args().skip(1).collect()) {
        eprintln!("reflector: {error}");
        std::process::exit(1);
    }
}
