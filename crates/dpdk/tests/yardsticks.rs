//! What the bench compares with does what it says.
#![cfg(feature = "yardsticks")]
#![allow(clippy::unwrap_used, reason = "a test file outside #[cfg(test)]")]

use millrace_dpdk::yardstick::{
    Fib, HashTable, Lpm, SOURCE_PLUGIN, Template, attach_source, write_templates,
};
use millrace_dpdk::{Buffer, BufferPool, Eal, EalOptions, Memory, Port, PortConfig};

#[test]
fn yardsticks() {
    let options = EalOptions { memory: Memory::Plain, megabytes: 256, ..EalOptions::default() };
    Eal::init(&options).unwrap();
    let pool = BufferPool::new("source", 255, 2048, 0, None).unwrap();
    the_source_goes_round(pool);
    tables_answer();
}

fn the_source_goes_round(pool: BufferPool) {
    let mut opened = Port::open(&"null,no-rx=1".parse().unwrap(), &PortConfig::new(pool)).unwrap();
    let templates: Vec<Template> = (0..3).map(|i| Template { header: [i; 64] }).collect();
    let lengths = vec![64, 100, 1500];
    let rx = &mut opened.rx[0];
    assert!(attach_source(rx, &pool, templates.clone(), vec![64, 64]).is_err());
    assert!(attach_source(rx, &pool, templates.clone(), vec![64, 63, 64]).is_err());
    assert!(attach_source(rx, &pool, templates.clone(), vec![64, 64, 2049]).is_err());
    attach_source(rx, &pool, templates.clone(), lengths.clone()).unwrap();
    let mut slots = [const { None::<Buffer> }; 7];
    assert_eq!(rx.burst(&mut slots), 7);
    for (i, buffer) in slots.iter().flatten().enumerate() {
        assert_eq!(buffer.len(), usize::from(lengths[i % 3]));
        assert_eq!(buffer.data()[..64], templates[i % 3].header);
        assert_eq!((buffer.port(), buffer.flags()), (opened.port.id(), 0));
    }
    drop(slots);
    assert_eq!(pool.available(), 255);

    assert!(std::path::Path::new(SOURCE_PLUGIN).is_file());
    let file = std::env::temp_dir().join(format!("millrace-templates-{}", std::process::id()));
    write_templates(&file, &templates, &lengths).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 16 + 3 * 64 + 3 * 2);
    std::fs::remove_file(&file).unwrap();
}

fn tables_answer() {
    let net = u32::from_be_bytes([10, 1, 0, 0]);
    let mut fib = Fib::new("fib", 1000, 256).unwrap();
    fib.add(net, 16, 7).unwrap();
    let mut next = [9_u64; 2];
    fib.lookup_bulk(&[net + 5, 1], &mut next);
    assert_eq!(next, [7, 0]);

    let mut lpm = Lpm::new("lpm", 1000, 256).unwrap();
    lpm.add(net, 16, 7).unwrap();
    lpm.delete(net, 16).unwrap();
    lpm.add(net, 16, 8).unwrap();
    let mut next = [0_u32; 2];
    lpm.lookup_bulk(&[net + 5, 1], &mut next);
    assert_eq!((next[0] & 0xff_ffff, next[0] >> 24 & 1, next[1] >> 24 & 1), (8, 1, 0));

    let mut table = HashTable::<16>::new("hash", 1000).unwrap();
    table.add(&[1; 16], 11).unwrap();
    table.add(&[2; 16], 22).unwrap();
    let mut values = [0; 3];
    assert_eq!(table.lookup_bulk(&[&[1; 16], &[3; 16], &[2; 16]], &mut values), 0b101);
    assert_eq!((values[0], values[2]), (11, 22));
}
