# Comments of headers as Doxygen wants them: `//` above a declaration, or behind it and on the lines
# that continue there.
/^ *\/\/ *---/ { sub(/--- */, "") }
/^ *\/\// {
  if (behind && match($0, /\/\//) > 12) sub(/\/\//, "///<")
  else { behind = 0; sub(/\/\//, "///") }
  print
  next
}
{
  behind = 0
  if (match($0, /[;,{]  \/\/ /)) { sub(/  \/\/ /, "  ///< "); behind = 1 }
  print
}
