use super::*;

#[test]
fn microseconds_may_be_more_than_a_second() {
    let whole = |tv_sec, tv_usec| {
        let time = whole_seconds(&timeval { tv_sec, tv_usec });
        (time.tv_sec, time.tv_nsec)
    };
    assert_eq!(whole(0, 3_000_000), (3, 0));
    assert_eq!(whole(1, 1_000_001), (2, 1000));
    assert!(whole(5, -2_000_000).1 < 0, "no time");
}
