"""What the exercises of chapter 16 share."""


from autograder.catalogue.sections import of_chapter

sections = of_chapter("16")
