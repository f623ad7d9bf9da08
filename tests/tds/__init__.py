"""TDS as [MS-TDS] has it, from the server's side: types, tokens, requests. No client's encoder has made its bytes."""
