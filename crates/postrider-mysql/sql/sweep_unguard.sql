-- Lets nobody delete events any more. Lock, index: none.
set @postrider_sweeping = null
