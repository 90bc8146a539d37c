-- The anonymous user (id 0) with its two accounts and the public key 0000000000.
-- The hash is the plain SHA-256 of that key: it is no secret, so its row does not depend on a pepper.
-- Tests that empty the tables run this file to have the user back.
INSERT INTO users (id, alias, concurrency)
VALUES (0, 'Anonymous', 500);

INSERT INTO accounts (user_id, kind, minimum_kudos)
VALUES (0, 'balance', -50),
       (0, 'escrow', 0);

INSERT INTO api_keys (user_id, key_hash, pepper_id, name)
VALUES (0, '84d9c4b849506b6d8f8075a9000e7e0a254be71060ea889fad3c88395988f4fc', 'public', 'public');
