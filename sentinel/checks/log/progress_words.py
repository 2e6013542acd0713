"""The words that say that a number counts what a training has done. Pure."""

import re

COUNTED_REGEX = (
    r"n?steps?|ep|iter|iters|iterations?|itr|itrs|itn|it|updates?|(?:mini)?batch(?:es)?|epochs?|samples?|tokens?"
    r"|rounds?|episodes?|trials?|ticks?|generations?"
    r"|schritte?|étape|etape|paso|passo|itération|iteration|iteración|iteração|époque|época|epoca|epoche"
    r"|épisode|episodio|episódio|episoden|krok|epoka|epocha|stap|langkah|adım|dönem|bước|крок|епоха|эпизод|раунд|エピソード|에피소드"
    r"|шаг|эпоха|итерация|步|步数|轮|轮次|回合|迭代|迭代次数|训练次数|ステップ|エポック|イテレーション|스텝|에포크|반복"
)
"""What is counted. In many languages: the words of those who wrote their own loop."""

PROGRESS_WORD_PATTERN = re.compile(
    r"(?i)(?!(?:skip|nan|eval|val|test|warm|bad|max|overflow|lost|fail|retr|num_samples_in|\w{0,16}decay))"
    rf"(?:\w{{1,24}}_|train|global|total|(?-i:[a-z]{{2,16}}(?=[A-Z])))?(?:{COUNTED_REGEX})"
    r"(?:_?(?:idx|index|id|num|no|nr|count|cnt|number|seen|processed|done))?"
)
"""The word before a number that is progress."""

WEAK_WORD_PATTERN = re.compile(
    r"(?i)(?!(?:skip|nan|eval|val|test|warm|bad|max|overflow|lost|fail|retr|num_samples_in|\w{0,16}decay))(?:\w{1,24}_)?"
    r"(?:time[_ ]?steps?|examples?|images?|imgs?|kimg|frames?|cycles?|pass|sentences?|sequences?|seqs?|words|games?"
    r"|progress|minibatch_?\w{0,8}|mb|progression|fortschritt)(?:_(?:idx|id|num|count|seen|processed|done))?"
)
"""Words that count other things as well. They are used only if none of the others is found."""

FILLER_REGEX = r"(?:[ _](?:is|n|number|num|no\.?|nr\.?|id|idx|index|count|seen|processed|played|done|completed|finished)|[ _]?[№#])?"
"""What stands between the word and its number: `step is 12`, `tokens seen: 12`, `Iteration no. 12`."""

FOLLOWING_WORD_PATTERN = re.compile(
    r"(?i)(?:st|nd|rd|th)?[ -]?((?:global |dynamics |simulation |md |inner |outer |training |train |optimizer |gradient |env |mini-?)?(?:steps?|iters?|its?|iterations?|updates?|batch(?:es)?|epochs?"
    r"|episodes?|timesteps?|rounds?|trials?))"
    r"(?![\w/]|[ -](?:per|left|remaining|to go|ago|/)|\.\w)"
)
"""The word behind a number: `processed 12 batches`, `12th step`."""

GLUED_WORD_REGEX = "|".join(
    f"(?<={word})|(?<={word}[-_])"
    for word in ("step", "iter", "epoch", "batch", "ration", "pdate", "ound", r"\bep", r"\bit")
)
"""Words to which a number may be glued: `step-12`, `epoch_3`, `ep12`."""
