//! The test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947): whether the samples of one group tend to be larger
//! than those of another, by their ranks alone, so that outliers weigh no more than other samples.
//!
//! Own code, as the crates that have it count every order one by one, which takes forever for a few samples against many.

/// Groups of up to so many samples get their exact distribution; larger ones the normal one, which is as good by then.
const EXACT: usize = 40;

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Test {
    /// How many pairs of samples have the larger one in the first group; a tie is half a pair.
    pub(crate) u: f64,
    /// How likely groups that do not differ would be as far apart as these: two-sided.
    pub(crate) p: f64,
}

/// Tests two groups of numbers; `None` where one is empty.
pub(crate) fn mann_whitney(a: &[f64], b: &[f64]) -> Option<Test> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let own = a.iter().map(|sample| (*sample, true));
    let mut all: Vec<(f64, bool)> = own.chain(b.iter().map(|sample| (*sample, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    // Twice each rank, so that all are whole numbers: equal ones have the mean of the ranks that they share.
    let mut ranks: Vec<usize> = Vec::with_capacity(all.len());
    let (mut sum, mut ties) = (0, 0.0);
    for equal in all.chunk_by(|x, y| x.0 == y.0) {
        let rank = 2 * ranks.len() + equal.len() + 1;
        sum += rank * equal.iter().filter(|(_, own)| *own).count();
        ties += (equal.len() as f64).powi(3) - equal.len() as f64;
        ranks.resize(ranks.len() + equal.len(), rank);
    }
    let u = (sum - a.len() * (a.len() + 1)) as f64 / 2.0;
    let p = match a.len().max(b.len()) {
        large if large > EXACT => normal_p(u, a.len(), b.len(), ties),
        _ if ties > 0.0 => tied_p(&ranks, a.len(), sum),
        _ => exact_p(u, a.len(), b.len()),
    };
    Some(Test { u, p })
}

/// The least that a test of groups of this size can give: above 0.05, no difference would count.
pub(crate) fn least_p(a: usize, b: usize) -> f64 {
    if a.max(b) > EXACT && a.min(b) >= 2 { 0.0 } else { exact_p(0.0, a.min(EXACT), b.min(EXACT)) }
}

/// In how many orders of two groups each U comes about: the coefficients of the Gaussian binomial, the product of
/// (1 - q^(b+i)) / (1 - q^i) for i from 1 to a. With [`EXACT`] they have 77 bits.
fn orders(a: usize, b: usize) -> Vec<i128> {
    let mut orders = vec![0_i128; a * b + 1];
    orders[0] = 1;
    for i in 1..=a {
        for u in (b + i..orders.len()).rev() {
            orders[u] -= orders[u - b - i];
        }
        for u in i..orders.len() {
            orders[u] += orders[u - i];
        }
    }
    orders
}

fn exact_p(u: f64, a: usize, b: usize) -> f64 {
    let orders = orders(a, b);
    // Without ties U is a whole number.
    let tail = u.min((a * b) as f64 - u).round() as usize;
    let within: i128 = orders.iter().take(tail + 1).sum();
    let all: i128 = orders.iter().sum();
    (2.0 * within as f64 / all as f64).min(1.0)
}

/// The same with ties: of all ways to choose the first group among the samples, the share whose ranks lie as far from the mean. The
/// normal distribution finds too much there: it takes four of six samples below all others, which are equal, for a difference.
///
/// `ranks`: twice each, in rising order; `own`: how many are of the first group, and `sum`: what these come to.
fn tied_p(ranks: &[usize], own: usize, sum: usize) -> f64 {
    let most: usize = ranks.iter().rev().take(own).sum();
    // By how many ranks were chosen and what they come to: in how many ways. All are added and none taken away, so rounding does
    // no harm.
    let mut ways = vec![vec![0.0_f64; most + 1]; own + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for chosen in (1..=own).rev() {
            let (fewer, rest) = ways.split_at_mut(chosen);
            let into = rest[0].iter_mut().skip(*rank);
            into.zip(&fewer[chosen - 1]).for_each(|(into, from)| *into += *from);
        }
    }
    let mean = own * (ranks.len() + 1);
    let is_as_far = |other: usize| other.abs_diff(mean) >= sum.abs_diff(mean);
    let far = ways[own].iter().enumerate().filter(|(other, _)| is_as_far(*other));
    far.map(|(_, ways)| ways).sum::<f64>() / ways[own].iter().sum::<f64>()
}

/// With corrections for ties and for continuity (Lehmann, Nonparametrics, 1.3). `ties`: the sum of t³ - t over groups of t
/// equal samples.
fn normal_p(u: f64, a: usize, b: usize, ties: f64) -> f64 {
    let (a, b) = (a as f64, b as f64);
    let all = a + b;
    let variance = a * b / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((u - a * b / 2.0).abs() - 0.5).max(0.0);
    libm::erfc(distance / (2.0 * variance).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn examples_of_scipy() {
        let test = mann_whitney(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]);
        let test = test.unwrap();
        assert_eq!(test.u, 17.0);
        close(test.p, 0.111_111_111_111_111_1);
        close(normal_p(17.0, 5, 4, 0.0), 0.111_346_886_533_140_41);
        let ties = mann_whitney(&[1., 2., 3., 4., 5., 6.], &[6., 7., 8., 9., 10.]).unwrap();
        assert_eq!(ties.u, 0.5);
        close(normal_p(0.5, 6, 5, 6.0), 0.010_411_098_147_110_422);
        close(normal_p(49.0, 9, 9, 0.0), 0.479_928_692_145_957_24);
        let same = mann_whitney(&[1.0, 1.0], &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!((same.u, same.p), (3.0, 1.0));
    }

    #[test]
    fn ties_are_counted_out() {
        let p = |a: &[f64], b: &[f64]| mann_whitney(a, b).unwrap().p;
        // Of the 462 ways to choose six of these eleven, two have the least sum, and one is as far above the mean.
        close(p(&[1., 2., 3., 4., 5., 6.], &[6., 7., 8., 9., 10.]), 3.0 / 462.0);
        // Of 924, 28 with all four small ones and 28 with none: no difference, which the normal distribution sees.
        close(p(&[1., 1., 1., 1., 2., 2.], &[2.0; 6]), 56.0 / 924.0);
        assert!(normal_p(6.0, 6, 6, 564.0) < 0.03);
        // Either group may be the first, and large groups agree with the normal distribution.
        close(p(&[2.0; 6], &[1., 1., 1., 1., 2., 2.]), 56.0 / 924.0);
        let group = |from: u32| (from..from + 40).map(|n| f64::from(n / 2)).collect::<Vec<_>>();
        let found = mann_whitney(&group(0), &group(4)).unwrap();
        let ties = 18.0 * 60.0 + 4.0 * 6.0;
        assert!((found.p - normal_p(found.u, 40, 40, ties)).abs() < 3e-3, "{found:?}");
        // Without ties it is the other way to count the same.
        let ranks: Vec<usize> = (1..=9).map(|rank| 2 * rank).collect();
        for u in 0..=20_usize {
            close(tied_p(&ranks, 5, 2 * u + 30), exact_p(u as f64, 5, 4));
        }
    }

    #[test]
    fn critical_values_of_the_tables() {
        // The highest U that counts at 5 %, two-sided.
        for (size, critical) in [(4, 0.0), (5, 2.0), (8, 13.0), (10, 23.0), (15, 64.0), (20, 127.0)]
        {
            assert!(exact_p(critical, size, size) <= 0.05, "{size}");
            assert!(exact_p(critical + 1.0, size, size) > 0.05, "{size}");
        }
    }

    #[test]
    fn orders_are_all_counted() {
        // Choosing 2 of 5 places: U of 0 to 6.
        assert_eq!(orders(2, 3), [1, 1, 2, 2, 2, 1, 1]);
        assert_eq!(orders(3, 2), orders(2, 3));
        // 40 of 80.
        assert_eq!(orders(40, 40).iter().sum::<i128>(), 107_507_208_733_336_176_461_620);
        assert!(orders(40, 40).iter().all(|count| *count > 0));
    }

    #[test]
    fn both_distributions_agree_where_they_meet() {
        for u in [300.0, 500.0, 600.0, 700.0] {
            let difference = exact_p(u, EXACT, EXACT) - normal_p(u, EXACT, EXACT, 0.0);
            assert!(difference.abs() < 3e-3, "{u}: {difference}");
        }
    }

    #[test]
    fn few_samples_never_count() {
        assert!(least_p(3, 3) > 0.05 && least_p(1, 30) > 0.05);
        assert!(least_p(4, 4) < 0.05 && least_p(3, 5) < 0.05 && least_p(2, 1000) < 0.05);
        assert!(mann_whitney(&[], &[1.0]).is_none() && mann_whitney(&[1.0], &[]).is_none());
    }
}
