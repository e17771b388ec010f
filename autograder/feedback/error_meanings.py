"""Explanations of the error messages of Python and torch that do not say what to look for.

The messages are the libraries' own; a test raises each of them, so a version that words one differently is noticed.
"""

import re

A_NUMBER = "A single number is used where several values are expected: in a loop, in max or sum, or right of a, b = ..."
NO_VALUE = (
    "A value there is None. A function without a return gives None, and so do methods such as append and sort; an "
    "argument that was left out may be None, too."
)
UNCALLED = "A function or method is named there and not called: round brackets are missing."
ROUND = "Square brackets follow a function. A call needs round ones."
OVER = (
    "Tensors that are combined element by element are aligned from the right: on each axis the two lengths must be "
    "equal, or one of them must be 1."
)
FLOATS = "This function computes with floats only, and was given whole numbers or booleans. Convert them first."
ONE_NUMBER = "float(), int(), .item(), a size and an index take a tensor with one number, and this one has more."
TOO_MANY = "The call has more arguments than the function takes. In a method, self counts as the first one."
NO_SELF = "The method takes no argument, not even self, which Python passes first. Add self to its signature."
EACH_NAME = "Names that take several values at once, in a, b = ... or in a loop, need exactly one value each."
NO_GRADIENT = (
    "No parameter that requires gradients leads to this value, or the way was cut: by no_grad, detach, item, argmax or "
    "a conversion to whole numbers."
)
A_MASK = "A mask has to be boolean, like the result of a comparison. This one is of dtype {0}."
AN_INDEX = "An index consists of whole numbers, or it is a boolean mask."
WHOLE = "A whole number is needed there. The division / always gives a float; // does not."
EMPTY = "The list or the tensor is empty for this input."
IN_THEIR_ORDER = "Are the arguments in their order?"
TWO_VECTORS = "dot and outer take two vectors, and those of dot have one length."

MEANINGS: dict[str, str] = {  # the beginning of a message, as a regular expression -> its explanation
    # syntax
    r"invalid (?:non-printable )?character": "Curly quotes and the like come with copied text: type them again.",
    r"inconsistent use of tabs and spaces": "Indent with spaces only.",
    r"invalid decimal literal": "Letters follow a number directly. Is a sign such as * missing between them?",
    # calls
    r".*\bmissing \d+ required .*arguments?: (.+)": "The call leaves out {0}.",
    r"(?:.*\.)?\w+\.\w+\(\) takes 0 positional arguments but": NO_SELF,
    r"(ones|zeros)\(\) takes .*positional arguments? but \d+ were given": (
        "torch.{0} takes whole numbers as sizes. One that it was given is something else, such as a tensor or a float."
    ),
    r".*\btakes .*positional arguments? but \d+ (?:was|were) given": TOO_MANY,
    r".*\bgot an unexpected keyword argument '(\w+)'": "The function that is called has no argument named {0}.",
    r".*\bgot multiple values for argument '(\w+)'": "The call gives {0} twice: by its place and by its name.",
    r"(max|min)\(\) received an invalid combination of arguments - got \((?:int|float), Tensor\)": (
        "torch's {0} compares two tensors. To keep the entries of a tensor above or below a number, use clamp; if the "
        "number is an axis, it comes after the tensor."
    ),
    r"(\w+)\(\) received an invalid combination of arguments": (
        "{0} does not take arguments of these types together. Is one missing, one too many, or one of another type?"
    ),
    r"(\w+)\(\): argument '\w+' .*(?:,but got|but found element of type) (?:[\w.]*\.)?Generator": (
        "{0} takes a generator only by its name, generator. Without the name it is taken for one of the sizes."
    ),
    r"(\w+)\(\): argument '(\w+)' .*(?:,but got|but found element of type) (?:[\w.]*\.)?(\w+)": (
        "{0} expects whole numbers as its argument {1}, and one of them is of type {2}."
    ),
    r"\w+\(\): argument '\w+' .*must be (?!Tensor,).+, not NoneType|Could not infer dtype of NoneType": NO_VALUE,
    r"(\w+)\(\): argument '(\w+)' .*must be (?!Tensor,)(.+), not (\w+)": (
        "Look at what the line passes as {1}: was it meant for another argument of {0}?"
    ),
    r"expected Tensor as element \d+ in argument \d+, but got (list|tuple)": (
        "One of the items there is a {0} of its own. Is one list inside another, or does this function take its "
        "tensors as separate arguments, as with * before the list?"
    ),
    r"\"bitwise_\w+\" not implemented for '\w+'": (
        "torch has no such operation for this dtype. & and | combine booleans, which a comparison or .bool() makes; "
        "~ inverts them, and a power is written **, not ^."
    ),
    r"unsupported operand type\(s\) for \^": "^ is not the power operator in Python. A power is written **.",
    r"unsupported operand type\(s\) for .*'(?:builtin_function_or_method|method|function)'": UNCALLED,
    r".*must be (?:real number|Number|Tensor), not (?:builtin_function_or_method|method|function)": UNCALLED,
    r"descriptor '__init__' (?:of|for|requires)": "super needs round brackets of its own: super().__init__().",
    r"exceptions must derive from": (
        "raise takes an exception, such as ValueError with a text in its brackets, and not a bare text."
    ),
    r"unsupported operation: some elements of the input tensor and the written-to": (
        "What is read and what is written overlap in memory. Read from a copy, which clone() makes."
    ),
    r"expected Tensor as element \d+ in argument \d+, but got (\w+)": (
        "A list of tensors is expected there, and one of its items is of type {0}."
    ),
    # kinds of values
    r"unhashable type: '(list|dict|set)'": (
        "A {0} can be changed, so it cannot be the key of a dictionary or an item of a set, and a Counter cannot count "
        "it. Is the whole {0} meant, or each of its items? (A tuple can be a key.)"
    ),
    r"bytes must be in range\(0, 256\)": "A byte is a whole number from 0 to 255, and one of these is not.",
    r"unhashable type: 'slice'|slice\(": "A dictionary has keys and no order of positions, so it cannot be sliced.",
    r"can only concatenate \w+ \(not \"NoneType\"\)": NO_VALUE,
    r"'NoneType' object is not|cannot unpack non-iterable NoneType|.*\b(?:not supported|operand).*'NoneType'": NO_VALUE,
    r"'(?:int|float|bool)' object is not iterable|cannot unpack non-iterable (?:int|float|bool)\b": A_NUMBER,
    r"'(?:int|float|bool)' object is not subscriptable": "A single number has no entries that [...] could select.",
    r"'(?:function|method|builtin_function_or_method|type)' object is not subscriptable": ROUND,
    r"'torch\.Size' object is not callable": (
        "shape is not a method: it has no round brackets. An index selects one of its lengths. (size() is a method.)"
    ),
    r"'([\w.]+)' object is not callable": (
        "The value before the round brackets is of type {0} and cannot be called. Should the brackets be square or "
        "left out, or is a sign such as * missing?"
    ),
    r"(?:Subtraction|Negation), the `-` operator, (?:with|on) a bool": (
        "torch can neither subtract nor negate booleans. ~ inverts a mask; a conversion to floats makes it 1 and 0."
    ),
    r"iteration over a 0-d tensor|len\(\) of a 0-d tensor": "This tensor is a single number and has no axes.",
    r"object of type '(?:builtin_function_or_method|method|function)' has no len": UNCALLED,
    r"object of type '(\w+)' has no len": "A value of type {0} has no length.",
    r"'float' object cannot be interpreted as an int|list indices .*not float|slice indices must be int": WHOLE,
    r"'\w+' object cannot be interpreted as an int|list indices must be int": "A whole number is needed there.",
    r"only integer tensors of a single element|only one element tensors|a Tensor with \d+ elements cannot": ONE_NUMBER,
    r"can only concatenate (\w+) \(not \"(\w+)\"\)": "Only a {0} can be added to a {0}, and this is of type {1}.",
    r"sequence item \d+: expected str instance, (\w+) found": (
        "join puts texts together, and one of the items is of type {0}. Make a text of each item first."
    ),
    r"unsupported operand type\(s\) for (?:/|-|\*\*|//|/=|-=|%): 'list' and|"
    r"unsupported operand type\(s\) for .*: '(?:int|float)' and 'list'": (
        "A list does not compute entry by entry, as a tensor does. Make a tensor of it, or compute each item in a loop."
    ),
    r"unsupported operand type\(s\) for .*: '(?:int|float)' and 'str'": (
        "A text does not count as a number, even if it consists of digits. int() or float() converts it."
    ),
    r"'(tuple|str|range|bytes)' object does not support item assignment": (
        "No item of a {0} can be changed. Change a list, or make a new {0}."
    ),
    r"'set' object is not subscriptable": (
        "A set has neither keys nor an order of positions. Curly brackets with commas, but without colons, make a set."
    ),
    r"string indices must be integers": (
        "The value before [...] is a text, and its positions are whole numbers. A loop over a dictionary yields "
        "its keys, one over a text its characters."
    ),
    r"string index out of range": "A text of length n has the indices 0 to n - 1, an empty one has none.",
    r"dictionary changed size during iteration|dictionary keys changed|Set changed size|deque mutated": (
        "The loop goes over something whose items the loop adds or removes. Go over a copy, such as a list of it."
    ),
    r"list\.(?:remove|index)\(x\): x not in list|.* is not in list|substring not found": (
        "remove and index stop with an error if what they search for does not occur. Check with `in` first."
    ),
    r"zip\(\) argument 2 is": "zip goes through several sequences at once. These two have different lengths.",
    r"can't multiply sequence by non-int": "* repeats a list. Only the numbers of a tensor are multiplied by it.",
    r"unsupported operand type\(s\) for .*'torch\.Size'|must be real number, not torch\.Size": (
        "A shape is all lengths at once. An index selects one of them."
    ),
    r"can only concatenate tuple .* to torch\.Size": "A shape is a tuple, and an index selects a length of it.",
    r"'[<>]=?' not supported between instances of '(\w+)' and '(\w+)'": (
        f"A value of type {{0}} and one of type {{1}} cannot be compared. {IN_THEIR_ORDER}"
    ),
    r"could not convert string to float|invalid literal for int": "This text is not a number.",
    r"new\(\): invalid data type 'str'|too many dimensions 'str'": "A text is given where torch expects numbers.",
    r"one_hot is only applicable": "one_hot takes whole numbers, of dtype long.",
    # lengths and places
    r"torch\.cat\(\): expected a non-empty|stack expects a non-empty": EMPTY,
    r"(?:min|max)\(\) (?:iterable argument|arg) is|(?:arg)?(?:min|max)\(\): Expected reduction dim": EMPTY,
    r"only one dimension can be inferred": "At most one of the lengths may be -1.",
    r"flatten\(\) has invalid args": "The first axis that is flattened does not come after the last one.",
    r"Trying to create tensor with negative dimension": "A length is negative there. What is it computed from?",
    r"upper bound and lower bound inconsistent": "arange counts up to its second number, unless its step is negative.",
    r"random_ expects 'from' to be less": "The range that is drawn from is empty. Its end is not in it.",
    r"cannot sample n_sample > prob_dist": "Without replacement, at most as many are drawn as a row has entries.",
    r"'weight' must be 2-D": "embedding takes the ids first, and then the table.",
    r"Target -?\d+ is out of bounds": (
        "A label is not among the classes, counted from 0: it is negative, or the scores have too few columns."
    ),
    r"Expected floating point type for target": (
        "Labels that have the shape of the scores are taken for probabilities. Ids of classes have one axis fewer."
    ),
    r"permute\(\): duplicate dims|permute\(sparse_coo\): number of dim": "permute takes each axis of the tensor once.",
    r"(?:not enough|too many) values to unpack": EACH_NAME,
    r"expected sequence of length \d+ at dim \d+": "torch.tensor needs rows of equal lengths.",
    r"(?:list|tuple|range object) index out of range|pop from empty list": (
        "A list of length n has the indices 0 to n - 1, an empty one none. So has a tuple."
    ),
    r"index out of range in self": (
        "An id is negative, or not below the number of rows of the table. Does it belong to a different vocabulary?"
    ),
    r"Class values must be": "one_hot takes whole numbers from 0 to the number of classes - 1.",
    r"~ \(operator\.invert\) is only implemented on": "~ turns a boolean mask around, and this tensor is not boolean.",
    r"tensors used as indices must be|only integers, slices": AN_INDEX,
    r"(?:torch\.)?(\w+)\(\): (?:dtype of indices should|Expected dtype int)": "{0} takes whole numbers as its index.",
    # dtypes
    r"\"\w+\" not implemented for '(?:Long|Int|Short|Char|Byte|Bool)'": FLOATS,
    r"\w+\(\): could not infer output dtype.* Got: (?:Long|Int|Bool)": FLOATS,
    r"result type Float can't be cast to the desired output type (?:Long|Int)": (
        "Numbers with a fraction would be written into a tensor of whole numbers. Create that tensor with floats."
    ),
    r"\w+ only supports boolean masks, but got mask with dtype (\w+)": A_MASK,
    r"where expected condition to be a boolean tensor, but got a tensor with dtype (\w+)": A_MASK,
    # numbers
    r"division by zero|float division by zero|integer (?:division or )?modulo by zero": (
        "A divisor is 0 for this input. Which one, and what should the result be then?"
    ),
    r"math domain error|expected a (?:positive|nonnegative) input": (
        "math.log needs a number above 0, and math.sqrt one that is not negative."
    ),
    r"math range error": "The result is larger than any float. Is the exponential taken of a large number?",
    r"maximum recursion depth exceeded": (
        "The function calls itself without an end. Does each call come closer to a case that returns at once?"
    ),
    r".*(?:can't allocate memory|ried to allocate)": (
        "More memory is asked for than there is. Which size in that line is larger than it should be?"
    ),
    r"EOF when reading a line": "Nobody answers input() during a check: everything that is needed is passed in.",
    r"probability tensor contains either": (
        "A negative number, an infinity or NaN is among the probabilities. Did a softmax compute them, and has each "
        "row a finite score?"
    ),
    r"dropout probability has to be": f"A probability is between 0 and 1. {IN_THEIR_ORDER}",
    # modules, optimizers and imports
    r"cannot assign '.*' as (parameter|child module) '(\w+)'": (
        "self.{1} holds a {0}, and can hold nothing but another one. Give this value a name of its own."
    ),
    r"[\"']attribute '(\w+)' already exists": (
        "A module has something else called {0}, such as a method of its own. Choose another name."
    ),
    r"[\"'](?:module|parameter) name can\\?'t contain": "The name of a layer or a parameter contains no dot.",
    r".* is not a Module subclass": (
        "Sequential, ModuleList and ModuleDict hold layers only. Functions are called in forward, and parameters are "
        "kept in an nn.ParameterList."
    ),
    r"ModuleList\.extend should be called with": "A ModuleList is made from a list of layers.",
    r"`(\w+)` is not an nn\.Module": (
        "get_submodule finds modules only, and {0} is something else, such as a parameter of a layer."
    ),
    r"\w+ has no attribute `(\w+)`": "No part of this module is called {0}.",
    r"Module \[(\w+)\] is missing the required \"forward\"": (
        "A {0} only holds its layers and cannot be called. Call them one after the other, in a loop."
    ),
    r"optimizer got an empty parameter list": (
        "The model has no parameters, or the module does not see them: a plain list hides its layers."
    ),
    r"can't optimize a non-leaf Tensor": "An optimizer takes parameters, not what is computed from them.",
    r"'method' object is not iterable": UNCALLED,
    r"'generator' object is not subscriptable": "A generator has no positions. Make a list of it first.",
    r"embed_dim must be divisible": (
        f"The number of features has to be a multiple of the number of heads. {IN_THEIR_ORDER}"
    ),
    r"was expecting embedding dimension of (\d+)": "The layer was made for vectors with {0} features.",
    r"cannot import name '(\w+)' from '([\w.]+)'": "There is no {0} in {1}. Check the spelling.",
    r"No module named '([\w.]+)'": "{0} is not installed, and no exercise needs it. Or is the name misspelled?",
    r"\[Errno 2\] No such": "There is no such file. No exercise reads one: everything that is needed is passed in.",
    r"Torch not compiled with CUDA|Expected one of cpu, cuda|Found no NVIDIA": (
        "This device is not there. Create tensors where the input is, on x.device, or name no device."
    ),
    r".*input matrix is singular": "This matrix has no inverse, as a matrix of zeros has none.",
    # gradients
    r"you can only change requires_grad flags of leaf": (
        "requires_grad is set for parameters and inputs, not for what is computed from them. detach() returns a value "
        "through which no gradient flows."
    ),
    r"[oO]nly Tensors of float": "Gradients exist for floats only. This tensor holds whole numbers or booleans.",
    r"grad can be implicitly created only for scalar": "backward starts from a single number, such as the loss.",
    r"element 0 of tensors does not require grad": NO_GRADIENT,
    r"Trying to backward through the graph a second time": (
        "backward ran twice for one result. Compute the result again before the second time."
    ),
    r"view size is not compatible": (
        "view works only if the values are in memory in the new order already. Otherwise reshape copies them."
    ),
}
# The same for errors about shapes: these sentences follow the shapes of the failing line.
RULES: dict[str, str] = {
    r"Sizes of tensors must match except in dimension": (
        "Tensors that are joined along one axis have equal lengths along all the others."
    ),
    r"shape '\[.*\]' is invalid for input of size (\d+)": (
        "A new shape keeps all numbers: the product of its lengths has to be {0}."
    ),
    r"The size of tensor a \(\d+\) must match": OVER,
    r"The shape of the mask .* does not match": (
        "Each axis of a boolean mask is as long as the axis it selects from: unlike masked_fill and torch.where, an "
        "index does not repeat axes of length 1."
    ),
    r"stack expects each tensor to be equal size": "Tensors that are stacked have equal shapes.",
    r"index -?\d+ is out of bounds for dimension \d+ with size 0": "The index selects from an axis that is empty here.",
    r"Expected target size": "cross_entropy expects the scores of all classes along axis 1.",
    r"Expected input batch_size": "cross_entropy needs one label for each row of scores.",
    r"too many indices for tensor": (
        "Square brackets take at most one index for each axis. A text there counts as several."
    ),
    r"einsum\(\): (?:fewer|more) operands": "einsum expects one group of letters for each tensor, with commas between.",
    r"einsum\(\): the number of subscripts": "Each group of letters has one letter for each axis of its tensor.",
    r"einsum\(\): subscript (\w) has size": "The letter {0} stands for one length, wherever it occurs.",
    r"einsum\(\): output subscript (\w)": "The letter {0} occurs only after the arrow.",
    r"Index tensor must have the same number": "gather and scatter need an index with as many axes as the tensor.",
    r"split_with_sizes expects": "The lengths of the pieces sum to the length of the axis.",
    r"expand\(.*the number of sizes provided": "expand takes a length for each axis; those of new axes come first.",
    r"The expanded size of the tensor \(0\)": (
        "An axis of length 0 is to be filled: is it a slice that begins where the axis ends, or later?"
    ),
    r"The expanded size of the tensor": "Only an axis of length 1 is repeated until it fits.",
    r"Tensors must have same number": (
        "cat joins tensors along an axis that all of them have; stack makes a new one. Has one of them lost an axis, "
        "by an index, a sum or an argmax?"
    ),
    r"zero-dimensional tensor .* cannot": "cat joins along an axis, and a single number has none. stack makes one.",
    r"unflatten: Provided sizes": "The product of the new lengths is the length of the axis that is divided.",
    r"Given normalized_shape": "The norm was made for another length of the last axis.",
    r"Padding length should be less": "pad takes two numbers for each axis, those of the last axis first.",
    r"Given groups=1, weight of size": "Axis 1 of the input, the channels, is as long as axis 1 of the kernel.",
    r"batch[12] must be a 3D": "bmm takes two tensors with three axes each.",
    r"(?:self|mat1|mat2) must be a matrix": "mm and addmm take matrices. @ takes tensors with more axes, too.",
    r"1D tensors expected|inconsistent tensor size, expected|outer: Expected 1-D": TWO_VECTORS,
    r"Number of dimensions of repeat dims": "repeat takes a number for each axis.",
    r"tri[lu]: input tensor must have at least 2": "tril and triu take matrices.",
    r"masked_fill_ only supports a 0-dim": "masked_fill writes one number. torch.where selects from two tensors.",
    r"setting an array element with a sequence": "The rows of an array have equal lengths.",
}


def meaning(message: str) -> str:
    """Return the explanation of a message; empty if it is not among the known ones."""
    return _found(MEANINGS, message)


def rule_of_shapes(message: str) -> str:
    """Return the rule of shapes that a message is about; empty if it is not among the known ones."""
    return _found(RULES, message)


def _found(table: dict[str, str], message: str) -> str:
    matches = ((re.match(begins, message), words) for begins, words in table.items())
    return next((words.format(*found.groups()) for found, words in matches if found), "")
