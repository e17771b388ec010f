"""Explanations of the error messages of Python and torch that do not say what to look for.

The messages are the libraries' own; a test raises each of them, so a version that words one differently is noticed.
"""

import re

A_NUMBER = "A single number is used where several values are expected: in a loop, in max or sum, or right of a, b = ..."
NO_VALUE = "A value there is None. A function without a return gives None, and so do methods such as append and sort."
ROUND = "Square brackets follow a function. A call needs round ones."
OVER = "Tensors that are combined element by element are aligned from the right: two lengths are equal, or one is 1."
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

MEANINGS: dict[str, str] = {  # the beginning of a message, as a regular expression -> its explanation
    # syntax
    r"invalid (?:non-printable )?character": "Curly quotes and the like come with copied text: type them again.",
    r"inconsistent use of tabs and spaces": "Indent with spaces only.",
    # calls
    r".*\bmissing \d+ required .*arguments?: (.+)": "The call leaves out {0}.",
    r"(?:.*\.)?\w+\.\w+\(\) takes 0 positional arguments but": NO_SELF,
    r".*\btakes .*positional arguments? but \d+ (?:was|were) given": TOO_MANY,
    r".*\bgot an unexpected keyword argument '(\w+)'": "The function that is called has no argument named {0}.",
    r".*\bgot multiple values for argument '(\w+)'": "The call gives {0} twice: by its place and by its name.",
    r"(\w+)\(\) received an invalid combination of arguments": (
        "{0} does not take arguments of these types together. Is one missing, one too many, or one of another type?"
    ),
    r"(\w+)\(\): argument '(\w+)' .*(?:,but got|but found element of type) (?:[\w.]*\.)?(\w+)": (
        "{0} expects whole numbers as its argument {1}, and one of them is of type {2}."
    ),
    r"(\w+)\(\): argument '(\w+)' .*must be (?!Tensor,)(.+), not (\w+)": (
        "Look at what the line passes as {1}: was it meant for another argument of {0}?"
    ),
    r"expected Tensor as element \d+ in argument \d+, but got (\w+)": (
        "A list of tensors is expected there, and one of its items is of type {0}."
    ),
    # kinds of values
    r"unhashable type: '(list|dict|set)'": (
        "A {0} can be changed, so it cannot be the key of a dictionary or an item of a set. A tuple can."
    ),
    r"unhashable type: 'slice'": "A dictionary has keys and no order of positions, so it cannot be sliced.",
    r"'NoneType' object is not|cannot unpack non-iterable NoneType|.*\b(?:not supported|operand).*'NoneType'": NO_VALUE,
    r"'(?:int|float|bool)' object is not iterable|cannot unpack non-iterable (?:int|float|bool)\b": A_NUMBER,
    r"'(?:int|float|bool)' object is not subscriptable": "A single number has no entries that [...] could select.",
    r"'(?:function|method|builtin_function_or_method|type)' object is not subscriptable": ROUND,
    r"'(\w+)' object is not callable": (
        "The value before the round brackets is of type {0} and cannot be called. Is a sign such as * missing?"
    ),
    r"iteration over a 0-d tensor|len\(\) of a 0-d tensor": "This tensor is a single number and has no axes.",
    r"object of type '(\w+)' has no len": "A value of type {0} has no length.",
    r"'float' object cannot be interpreted as an int|list indices .*not float|slice indices must be int": WHOLE,
    r"'\w+' object cannot be interpreted as an int|list indices must be int": "A whole number is needed there.",
    r"only integer tensors of a single element|only one element tensors|a Tensor with \d+ elements cannot": ONE_NUMBER,
    r"can only concatenate (\w+) \(not \"(\w+)\"\)": "Only a {0} can be added to a {0}, and this is of type {1}.",
    # lengths and places
    r"permute\(\): duplicate dims|permute\(sparse_coo\): number of dim": "permute takes each axis of the tensor once.",
    r"(?:not enough|too many) values to unpack": EACH_NAME,
    r"expected sequence of length \d+ at dim \d+": "torch.tensor needs rows of equal lengths.",
    r"list index out of range|pop from empty list": "A list of length n has the indices 0 to n - 1, an empty one none.",
    r"index out of range in self": "An id is as large as the table has rows, or larger, or negative.",
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
    # gradients
    r"element 0 of tensors does not require grad": NO_GRADIENT,
    r"Trying to backward through the graph a second time": (
        "backward ran twice for one result. Compute the result again before the second time."
    ),
    r"view size is not compatible": "view needs numbers that lie in memory in their new order. reshape copies others.",
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
    r"The shape of the mask .* does not match": "Each axis of a boolean mask is as long as the axis it selects from.",
    r"stack expects each tensor to be equal size": "Tensors that are stacked have equal shapes.",
    r"index -?\d+ is out of bounds for dimension \d+ with size 0": "The index selects from an axis that is empty here.",
    r"Expected target size": "cross_entropy expects the scores of all classes along axis 1.",
    r"Expected input batch_size": "cross_entropy needs one label for each row of scores.",
    r"too many indices for tensor": "Square brackets take at most one index for each axis.",
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
