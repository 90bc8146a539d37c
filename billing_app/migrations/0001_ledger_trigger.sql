-- The ledger is append-only: a mistake is answered by another transfer.
-- By statement and not by row, so that a change that happens to match nothing is refused as well.
-- TRUNCATE is left alone: tests empty the tables with it, and nothing else does.
CREATE FUNCTION refuse_ledger_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'transfers are never changed: % is refused, post another transfer instead', TG_OP
          USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER transfers_append_only
BEFORE UPDATE OR DELETE ON transfers
   FOR EACH STATEMENT EXECUTE FUNCTION refuse_ledger_change();
