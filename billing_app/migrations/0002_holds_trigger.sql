-- A hold resolves once: an open one changes by its resolution alone, a resolved one never, and none is deleted.
-- TRUNCATE is left alone: tests empty the tables with it, and nothing else does.
CREATE FUNCTION refuse_hold_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'holds are never deleted: % is refused', OLD.key
              USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.resolved_at IS NOT NULL THEN
        RAISE EXCEPTION 'a hold resolves once: % is %', OLD.key, OLD.resolution
              USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.resolved_at IS NULL
       OR (NEW.id, NEW.account_id, NEW.key, NEW.kudos, NEW.cause, NEW.placed_at, NEW.expires_at)
          IS DISTINCT FROM
          (OLD.id, OLD.account_id, OLD.key, OLD.kudos, OLD.cause, OLD.placed_at, OLD.expires_at)
    THEN
        RAISE EXCEPTION 'an open hold changes by its resolution alone: % is refused', OLD.key
              USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER holds_resolve_once
BEFORE UPDATE OR DELETE ON holds
   FOR EACH ROW EXECUTE FUNCTION refuse_hold_change();
