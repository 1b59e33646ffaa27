//! Files that are made, on a simulated machine.

use discnice_estimator::{Estimator, Modules, Overhead};
use discnice_ledger::member::Books;

use crate::tests::simulation::{Machine, class};
use crate::{File, Host, Regulator, Thread};

const RATE: u64 = 5 << 20;

fn machine(size: u64) -> Machine {
    Machine::new(size, true)
}

#[test]
fn created_files_are_counted_by_every_estimator() {
    for (_, estimator) in Estimator::ALL {
        let (books, class) = (Books::new(), class(RATE));
        class.choose(estimator, Modules::ALL_ON);
        for size in [0, 1 << 20] {
            let machine = machine(size);
            let device = machine.status(3).unwrap().device;
            let systems = class.estimation().file_systems();
            let fs = systems.get(systems.slot(device)).unwrap();
            fs.set_overhead(Overhead { beside_account: 500, ..Overhead::default() });
            Regulator::new(&machine, class, &books).classify(3, &File::new());
        }
        assert_eq!(class.estimation().overhead(), (0, 500), "{estimator:?}");
    }
}

#[test]
fn tiny_files_that_are_made_are_counted_when_they_are_closed() {
    for (_, estimator) in Estimator::ALL {
        let (books, class) = (Books::new(), class(RATE));
        class.choose(estimator, Modules::ALL_ON);
        let systems = class.estimation().file_systems();
        let fs = systems.get(systems.slot(machine(0).status(3).unwrap().device)).unwrap();
        // What it began with, and what it is closed with.
        let make = |begun, size| {
            let (made, machine) = (machine(begun), machine(size));
            let (thread, file) = (Thread::default(), File::new());
            Regulator::new(&made, class, &books).classify(3, &file);
            Regulator::new(&machine, class, &books).before_close(&thread, 3, &file);
        };
        let calibrated = |tiny| {
            fs.set_overhead(Overhead {
                beside_account: 5000,
                tiny_beside_data: tiny,
                ..Overhead::default()
            });
        };
        calibrated(None);
        make(0, 1);
        calibrated(Some(-6000));
        assert_eq!(class.estimation().overhead().1, 5000, "it was like any other then");
        [2049, 1 << 20, 0].into_iter().for_each(|size| make(0, size));
        assert_eq!(class.estimation().overhead().1, 20_000, "{estimator:?}");
        make(1, 1);
        assert_eq!(class.estimation().overhead().1, 20_000, "somebody else had made it");
        [1, 2048].into_iter().for_each(|size| make(0, size));
        assert_eq!(class.estimation().overhead().1, 18_000, "{estimator:?}");
    }
}
