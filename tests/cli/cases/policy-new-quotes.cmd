mkdir "it's a\$HOME"; moesim policy new mine --dir "it's a\$HOME" >said; sed "s|-I'[^']*'|-I.|" said
sed -n 's/^  cc /printf "%s\\n" /p; s/^  moesim /printf "%s\\n" /p' said | sed "s|-I'[^']*'|-I.|" >words; sh words
