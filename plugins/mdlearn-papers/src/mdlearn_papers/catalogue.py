"""The real data sets of the papers: what each one is called here, where it comes from, and its expected shape."""

from __future__ import annotations

from dataclasses import dataclass

UCI = "UCI Machine Learning Repository"
LIBSVM = "LIBSVM data page"
RAETSCH = "Raetsch's benchmark repository (IDA)"
LSVM = "data of the LSVM and SSVM programs"


@dataclass(frozen=True)
class Source:
    """A data set.

    Attributes
    ----------
    rows, columns : int
        Columns as numbers; nominal columns are one-hot where `codes` is above 0. Rows of training and test part
        together, those with missing values included.
    counts : tuple of int
        Rows of every class, ascending.
    origin : str
    codes : int
        Columns of a file that holds one integer code per nominal column instead; 0 where there is no such form.
    train : int
        Leading rows that are the training part; 0 where the set has no such part.
    """

    rows: int
    columns: int
    counts: tuple[int, ...]
    origin: str
    codes: int = 0
    train: int = 0


SOURCES: dict[str, Source] = {
    "a9a": Source(48842, 123, (11687, 37155), LIBSVM, train=32561),
    "ann_thyroid": Source(7200, 21, (166, 368, 6666), f"{UCI}, thyroid disease (ann)", train=3772),
    "australian": Source(690, 14, (307, 383), f"{UCI}, Statlog australian credit"),
    "breast_cancer_ljubljana": Source(286, 48, (85, 201), f"{UCI}, breast cancer (Ljubljana)", codes=9),
    "breast_w": Source(699, 9, (241, 458), f"{UCI}, breast cancer Wisconsin (original)"),
    "bupa": Source(345, 6, (145, 200), f"{UCI}, liver disorders"),
    "checkerboard": Source(1000, 2, (486, 514), LSVM),
    "cleveland": Source(297, 13, (83, 214), f"{LSVM}; UCI heart disease (Cleveland), complete rows"),
    "colic": Source(368, 60, (136, 232), f"{UCI}, horse colic", codes=22),
    "colic_orig": Source(368, 133, (124, 244), f"{UCI}, horse colic, lesion site", codes=26),
    "credit_a": Source(690, 43, (307, 383), f"{UCI}, credit approval", codes=15),
    "credit_g": Source(1000, 61, (300, 700), f"{UCI}, Statlog german credit", codes=20),
    "dermatology": Source(366, 34, (20, 49, 52, 61, 72, 112), f"{UCI}, dermatology"),
    "diabetes_pima": Source(768, 8, (268, 500), f"{UCI}, Pima Indians diabetes"),
    "fourclass": Source(862, 2, (307, 555), LIBSVM),
    "haberman": Source(306, 3, (81, 225), f"{UCI}, Haberman's survival"),
    "heart": Source(270, 13, (120, 150), f"{UCI}, Statlog heart"),
    "heart_c": Source(303, 22, (138, 165), f"{UCI}, heart disease (Cleveland)", codes=13),
    "housing_binary": Source(506, 13, (245, 261), f"{LSVM}; UCI Boston housing with two classes"),
    "ida_banana": Source(5300, 2, (2376, 2924), RAETSCH),
    "ida_breast_cancer": Source(277, 9, (81, 196), RAETSCH),
    "ida_diabetis": Source(768, 8, (268, 500), RAETSCH),
    "ida_flare_solar": Source(1066, 9, (477, 589), RAETSCH),
    "ida_german": Source(1000, 20, (300, 700), RAETSCH),
    "ida_heart": Source(270, 13, (120, 150), RAETSCH),
    "ida_image": Source(2310, 18, (990, 1320), RAETSCH),
    "ida_ringnorm": Source(7400, 20, (3664, 3736), RAETSCH),
    "ida_splice": Source(3175, 60, (1527, 1648), RAETSCH),
    "ida_thyroid": Source(215, 5, (65, 150), RAETSCH),
    "ida_titanic": Source(2201, 3, (711, 1490), RAETSCH),
    "ida_twonorm": Source(7400, 20, (3697, 3703), RAETSCH),
    "ida_waveform": Source(5000, 21, (1647, 3353), RAETSCH),
    "ijcnn1": Source(141691, 22, (13565, 128126), LIBSVM, train=49990),
    "ionosphere": Source(351, 34, (126, 225), f"{UCI}, ionosphere"),
    "iris": Source(150, 4, (50, 50, 50), f"{UCI}, iris; also with scikit-learn"),
    "isolet_600x51": Source(600, 51, (300, 300), f"{UCI}, isolet, two classes and 51 reduced columns"),
    "lymphography": Source(148, 38, (2, 4, 61, 81), f"{UCI}, lymphography", codes=18),
    "mnist": Source(
        70000, 784, (6313, 6824, 6825, 6876, 6903, 6958, 6990, 7141, 7293, 7877), "MNIST (LeCun)", train=60000
    ),
    "mushroom": Source(8124, 121, (3916, 4208), f"{UCI}, mushroom", codes=22),
    "mushroom_lsvm": Source(8124, 22, (3916, 4208), LSVM),
    "new_thyroid": Source(215, 5, (30, 35, 150), f"{UCI}, thyroid disease (new)"),
    "orl_32x32": Source(400, 1024, (10,) * 40, "ORL faces, 32 x 32 crops (Cai)"),
    "parkinsons": Source(195, 22, (48, 147), f"{UCI}, Parkinsons"),
    "pima_lsvm": Source(768, 8, (268, 500), LSVM),
    "planning_relax": Source(182, 12, (52, 130), f"{UCI}, planning relax"),
    "promoters": Source(106, 228, (53, 53), f"{UCI}, promoter gene sequences", codes=57),
    "satimage": Source(6435, 36, (626, 703, 707, 1358, 1508, 1533), f"{UCI}, Statlog Landsat satellite", train=4435),
    "sonar": Source(208, 60, (97, 111), f"{UCI}, sonar, mines against rocks"),
    "soybean_small": Source(47, 35, (10, 10, 10, 17), f"{UCI}, soybean (small)"),
    "svmguide1": Source(7089, 4, (3089, 4000), LIBSVM, train=3089),
    "tic_tac_toe": Source(958, 27, (332, 626), f"{UCI}, tic-tac-toe endgame", codes=9),
    "tic_tac_toe_codes": Source(958, 9, (332, 626), LSVM),
    "usps": Source(
        9298, 256, (708, 716, 792, 821, 824, 834, 852, 929, 1269, 1553), "USPS digits (Le Cun, Hull)", train=7291
    ),
    "vehicle": Source(846, 18, (199, 212, 217, 218), f"{UCI}, Statlog vehicle silhouettes"),
    "vote": Source(435, 16, (168, 267), f"{UCI}, congressional voting records", codes=16),
    "wdbc": Source(569, 30, (212, 357), f"{UCI}, breast cancer Wisconsin (diagnostic); also with scikit-learn"),
}
"""By the name that files begin with; in the order of the alphabet."""
