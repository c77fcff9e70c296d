"""What a served API refuses besides: the rules that no decision of Fairlead depends on.

Law: pure; each rule reads an object's JSON in canonical form with its defaults, and yields what is
wrong in upstream's words. The rules of `fairlead.apiserver.validation`, which simulated clusters
know too, are asked as well; nothing is said twice.

`rules` puts them together by kind.
"""
